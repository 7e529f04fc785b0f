package gate

import (
	"net/netip"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

// refusals are the gate's own part of a refusal with every limit and list on: of a
// call that the limit of its address refuses, and of a purchase that all let in and
// that is sold out.
func refusals(t testing.TB) map[string]func() bool {
	allow, err := limit.ParsePrefixes("10.0.0.0/8", "2001:db8::/32")
	require.NoError(t, err)
	deny, err := limit.ParsePrefixes("198.18.0.0/15", "2001:db9::/32")
	require.NoError(t, err)
	c := limit.Config{IPv4Bits: 32, IPv6Bits: 64, Allow: allow, Deny: deny}
	plenty := limit.Rate{Events: 1e9, Per: time.Second, Burst: 1e9}
	for _, level := range limit.Levels {
		c.Limits[level] = &limit.Limit{Rate: plenty}
	}
	limits := limit.New()
	limits.Use(c, time.Now())
	b := setup(t, "redis://"+miniredis.RunT(t).Addr(), with(limits))
	b.preheat(t, 1)
	require.Equal(t, lua.Reserved, b.click(t, "first").Outcome)

	c.Limits[limit.IP] = &limit.Limit{Rate: limit.Rate{Events: 1, Per: 24 * time.Hour, Burst: 1}}
	narrow := limit.New()
	narrow.Use(c, time.Now())
	n := setup(t, "redis://"+miniredis.RunT(t).Addr(), with(narrow))
	abuser, buyer := netip.MustParseAddr("2001:dba::1"), netip.MustParseAddr("192.0.2.1")
	require.True(t, n.Enter(abuser).In())

	click := Click{ProductID: product, UserID: "alice", Quantity: 1}
	ctx := t.Context()
	return map[string]func() bool{
		"limited": func() bool { return n.Enter(abuser).Refused },
		"sold_out": func() bool {
			return b.Enter(buyer).In() && b.EnterUser("alice").In() && b.Reserve(ctx, click).Outcome == lua.SoldOut
		},
	}
}

func BenchmarkRefusal(b *testing.B) {
	for name, refuse := range refusals(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !refuse() {
					b.Fatal("not refused")
				}
			}
		})
	}
}

func TestRefusalsAllocateNothing(t *testing.T) {
	for name, refuse := range refusals(t) {
		require.True(t, refuse(), name)
		// Tokens are taken ahead in the background, which allocates now and then.
		require.LessOrEqual(t, testing.AllocsPerRun(10_000, func() { refuse() }), 1.0, name)
	}
}
