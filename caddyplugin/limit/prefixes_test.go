package limit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrefixes(t *testing.T) {
	p, err := ParsePrefixes("10.0.0.0/8 10.1.0.0/16", "192.0.2.7\n# a comment, and an empty line\n\n2001:db8::/32 # documentation\n::ffff:198.51.100.0/120", "10.0.0.0/8")
	require.NoError(t, err)
	require.Equal(t, 4, p.Len(), "10.1.0.0/16 and what comes twice are in others")
	for address, want := range map[string]bool{
		"10.0.0.0": true, "10.1.2.3": true, "10.255.255.255": true, "11.0.0.0": false, "9.255.255.255": false,
		"192.0.2.7": true, "192.0.2.6": false, "192.0.2.8": false,
		"2001:db8::": true, "2001:db8:ffff::1": true, "2001:db9::": false, "2001:db7:ffff::": false,
		"198.51.100.9": true, "198.51.101.0": false, "": false, "::": false, "0.0.0.0": false,
	} {
		require.Equal(t, want, p.Contain(addr(address)), address)
	}
	all, err := ParsePrefixes("0.0.0.0/0")
	require.NoError(t, err)
	require.True(t, all.Contain(addr("1.2.3.4")))
	require.False(t, all.Contain(addr("::1")), "IPv4 is not all there is")
	require.False(t, Prefixes{}.Contain(addr("1.2.3.4")))
}

func TestPrefixesNameWhatIsWrong(t *testing.T) {
	for _, text := range []string{"shop.example", "10.0.0.0/33", "10.0.0", "fe80::1%eth0", "::ffff:0.0.0.0/90", "10.0.0.0/8,10.1.0.0/16"} {
		_, err := ParsePrefixes("10.0.0.0/8", text)
		require.ErrorContains(t, err, text)
	}
}

// A set says the same as its networks one by one.
func TestPrefixesLikeOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	var list []netip.Prefix
	for range 500 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(random.UintN(4)), byte(random.Uint32()), byte(random.Uint32())}), 14+random.IntN(19)).Masked()
		list, texts = append(list, p), append(texts, p.String())
	}
	set, err := ParsePrefixes(texts...)
	require.NoError(t, err)
	for range 20_000 {
		a := netip.AddrFrom4([4]byte{10, byte(random.UintN(5)), byte(random.Uint32()), byte(random.Uint32())})
		want := false
		for _, p := range list {
			want = want || p.Contains(a)
		}
		require.Equal(t, want, set.Contain(a), a)
	}
}

func BenchmarkPrefixes(b *testing.B) {
	var texts []string
	for i := range 100_000 {
		texts = append(texts, fmt.Sprintf("%d.%d.%d.0/25", 1+i>>16, i>>8&255, i&255))
	}
	p, err := ParsePrefixes(texts...)
	require.NoError(b, err)
	from := addr("1.77.88.200")
	b.ReportAllocs()
	for b.Loop() {
		if p.Contain(from) {
			b.Fatal("not in the set")
		}
	}
}
