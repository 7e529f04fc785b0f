package limit

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Prefixes is a set of networks that is looked up in a moment, however many there
// are. The zero value is empty. It never changes, so it is safe for concurrent
// use.
type Prefixes struct {
	// sorted holds no two that overlap: of two networks one contains the other, or
	// they have nothing in common.
	sorted []netip.Prefix
}

// ParsePrefixes reads networks such as 192.0.2.0/24 and 2001:db8::/32 and single
// addresses. A text may hold many, apart by white space; from # to the end of a
// line is a comment.
func ParsePrefixes(texts ...string) (Prefixes, error) {
	var all []netip.Prefix
	var errs []error
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			for field := range strings.FieldsSeq(line) {
				p, err := parsePrefix(field)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				all = append(all, p)
			}
		}
	}
	if len(errs) > 0 {
		return Prefixes{}, errors.Join(errs[:min(len(errs), 5)]...)
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	sorted := all[:0]
	for _, p := range all {
		if n := len(sorted); n > 0 && sorted[n-1].Overlaps(p) {
			continue // the wider one comes first
		}
		sorted = append(sorted, p)
	}
	return Prefixes{sorted: slices.Clip(sorted)}, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, alone := netip.ParseAddr(text)
		if alone != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%.80q is neither a network such as 192.0.2.0/24 nor an address", text)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := p.Addr(); addr.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%.80q mixes IPv4 and IPv6 addresses; write the IPv4 network", text)
		}
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Contain says whether addr, unmapped and without a zone, is in one of the
// networks. The zero Addr is in none.
func (p Prefixes) Contain(addr netip.Addr) bool {
	if len(p.sorted) == 0 {
		return false
	}
	i, found := slices.BinarySearchFunc(p.sorted, addr, func(p netip.Prefix, addr netip.Addr) int {
		return p.Addr().Compare(addr)
	})
	return found || i > 0 && p.sorted[i-1].Contains(addr)
}

// Len is the number of networks, those within others not counted.
func (p Prefixes) Len() int { return len(p.sorted) }
