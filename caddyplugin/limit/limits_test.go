package limit

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// config limits what is given, addresses as usual.
func config(limits map[Level]Limit) Config {
	c := Config{IPv4Bits: 32, IPv6Bits: 64}
	for level, limit := range limits {
		c.Limits[level] = &limit
	}
	return c
}

func using(c Config) *Limits {
	l := New()
	l.Use(c, start)
	return l
}

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

// in enters n times and counts how often it is let in.
func in(l *Limits, address string, n int) (let int) {
	for range n {
		if v := l.Enter(addr(address), start); v.In() {
			let++
		}
	}
	return let
}

func TestWhoSharesABucket(t *testing.T) {
	for _, tc := range []struct {
		first, second string
		v4, v6        int
		same          bool
	}{
		{"192.0.2.1", "192.0.2.1", 32, 64, true},
		{"192.0.2.1", "192.0.2.2", 32, 64, false},
		{"192.0.2.1", "192.0.2.200", 24, 64, true},
		{"192.0.2.1", "::ffff:192.0.2.1", 32, 64, true},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2:ffff::1", 32, 64, true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", 32, 64, false},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", 32, 56, true},
		{"2001:db8:1:2::1", "2001:db8:1:2::2", 32, 128, false},
		{"fe80::1%eth0", "fe80::2%eth1", 32, 64, true},
		{"", "", 32, 64, true},
		{"", "0.0.0.0", 32, 64, false},
		{"", "::", 32, 64, false},
	} {
		c := config(map[Level]Limit{IP: {Rate: perSecond(1, 1)}})
		c.IPv4Bits, c.IPv6Bits = tc.v4, tc.v6
		l := using(c)
		require.Equal(t, 1, in(l, tc.first, 1))
		require.Equal(t, tc.same, in(l, tc.second, 1) == 0, "%s and %s", tc.first, tc.second)
	}
}

// What one limit refuses takes nothing from the next.
func TestEnter(t *testing.T) {
	c := config(map[Level]Limit{IP: {Rate: perSecond(1, 2)}, Total: {Rate: perSecond(1, 5)}})
	var err error
	c.Allow, err = ParsePrefixes("10.0.0.0/8")
	require.NoError(t, err)
	c.Deny, err = ParsePrefixes("10.6.6.0/24", "2001:db8::/32")
	require.NoError(t, err)
	l := using(c)
	require.Equal(t, 2, in(l, "192.0.2.1", 100))
	v := l.Enter(addr("192.0.2.1"), start)
	require.True(t, v.Refused)
	require.Equal(t, IP, v.Level)
	require.Equal(t, `"ip";q=1;w=1`, v.Policy)
	require.Zero(t, in(l, "10.6.6.6", 1), "who is on both lists is denied")
	require.True(t, l.Enter(addr("2001:db8::1"), start).Denied)
	require.Equal(t, 3, in(l, "10.1.1.1", 10), "who is allowed is not spared the total")
	v = l.Enter(addr("10.1.1.1"), start)
	require.Equal(t, Total, v.Level)
	require.Equal(t, 5, in(l, "10.1.1.1", 0)+int(l.Stats().Levels[Total].Allowed))

	s := l.Stats()
	require.Equal(t, Count{Allowed: 2, Refused: 99}, s.Levels[IP])
	require.EqualValues(t, 8, s.Levels[Total].Refused)
	require.EqualValues(t, 2, s.Denied)
	require.EqualValues(t, 11, s.Exempt)
	require.Equal(t, 1, s.Addresses)
}

func TestShadow(t *testing.T) {
	l := using(config(map[Level]Limit{
		IP: {Rate: perSecond(1, 1), Shadow: true}, Total: {Rate: perSecond(1, 2)}, User: {Rate: perSecond(1, 1), Shadow: true},
	}))
	require.Zero(t, l.Enter(addr("192.0.2.1"), start).Shadowed)
	v := l.Enter(addr("192.0.2.1"), start)
	require.True(t, v.In())
	require.True(t, v.Shadowed.Has(IP))
	require.False(t, v.Shadowed.Has(Total))
	v = l.Enter(addr("192.0.2.1"), start)
	require.True(t, v.Refused, "another limit that means it")
	require.Equal(t, Total, v.Level)
	require.True(t, v.Shadowed.Has(IP))

	require.True(t, l.User("alice", start).Then(Verdict{}).In())
	both := Verdict{Shadowed: Set(0).with(IP)}.Then(l.User("alice", start))
	require.True(t, both.Shadowed.Has(IP) && both.Shadowed.Has(User))
	require.Equal(t, Count{Allowed: 1, Shadowed: 2}, l.Stats().Levels[IP])
}

func TestUsersAndProducts(t *testing.T) {
	l := using(config(map[Level]Limit{User: {Rate: perSecond(1, 1)}, Activity: {Rate: perSecond(1, 2)}}))
	alice, bob := l.User("alice", start), l.User("bob", start)
	require.True(t, alice.In() && bob.In())
	again := l.User("alice", start)
	require.Equal(t, User, again.Level)
	require.True(t, again.Refused)
	for range 2 {
		v := l.Activity("1001", start)
		require.True(t, v.In())
	}
	v := l.Activity("1001", start)
	require.Equal(t, Activity, v.Level)
	v = l.Activity("1002", start)
	require.True(t, v.In())
	s := l.Stats()
	require.Equal(t, 2, s.Users)
	require.Equal(t, 2, s.Products)
}

func TestNoLimits(t *testing.T) {
	l := New()
	require.Equal(t, 1000, in(l, "192.0.2.1", 1000))
	v := l.Lease(SharedTotal, "", nil, start)
	require.True(t, v.In())
	require.Zero(t, l.Stats())
}

// A change gives nobody a fresh burst, unless his level was off.
func TestUse(t *testing.T) {
	c := config(map[Level]Limit{IP: {Rate: perSecond(1, 2)}, Total: {Rate: perSecond(1, 3)}})
	l := using(c)
	require.Equal(t, 2, in(l, "192.0.2.1", 5))
	l.Use(config(map[Level]Limit{IP: {Rate: perSecond(2, 50)}, Total: {Rate: perSecond(1, 30)}}), start)
	require.Zero(t, in(l, "192.0.2.1", 5))
	require.Equal(t, 1, in(l, "192.0.2.2", 5), "one was left of the total")

	l.Use(config(map[Level]Limit{IP: {Rate: perSecond(1, 2)}}), start)
	require.Zero(t, in(l, "192.0.2.1", 5))
	require.Equal(t, 2, in(l, "192.0.2.3", 5))
	regrouped := config(map[Level]Limit{IP: {Rate: perSecond(1, 2)}})
	regrouped.IPv4Bits = 24
	l.Use(regrouped, start)
	require.Equal(t, 2, in(l, "192.0.2.1", 5), "another grouping knows nobody")
	l.Use(config(nil), start)
	require.Equal(t, 5, in(l, "192.0.2.1", 5))
}

// Without the count a new lease, as of another engine after a reload, goes on with
// what the last one has left.
func TestLeaseAfterLease(t *testing.T) {
	for _, level := range []Level{SharedTotal, SharedActivity} {
		c := config(map[Level]Limit{level: {Rate: perSecond(1, 20)}})
		l := using(c)
		away := func(context.Context, Rate, int) (Taken, error) { return Taken{}, errors.New("connection refused") }
		let := 0
		for range 10 {
			lease := NewLease(away, atOnce, func() time.Time { return start }, new(LeaseStats))
			for range 10 {
				if v := l.Lease(level, "1001", lease, start); v.In() {
					let++
				}
			}
			l.Use(c, start)
		}
		require.Equal(t, 1+16, let, level)
	}
}

// Those refused together are not told to come back together.
func TestRetryAfterIsSpread(t *testing.T) {
	for _, tc := range []struct {
		rate     Rate
		min, max int
	}{
		{perSecond(100, 1), 1, 2},
		{Rate{Events: 1, Per: 5 * time.Second, Burst: 1}, 5, 6},
		{Rate{Events: 1, Per: time.Hour, Burst: 1}, 3600, 4500},
	} {
		l := using(config(map[Level]Limit{Total: {Rate: tc.rate}}))
		require.Equal(t, 1, in(l, "", 1))
		told := map[int]bool{}
		for range 200 {
			v := l.Enter(addr(""), start)
			require.True(t, v.Refused)
			require.GreaterOrEqual(t, v.RetryAfter, tc.min)
			require.LessOrEqual(t, v.RetryAfter, tc.max)
			told[v.RetryAfter] = true
		}
		require.Greater(t, len(told), 1)
	}
}

func TestPolicy(t *testing.T) {
	for rate, want := range map[Rate]string{
		{Events: 20, Per: time.Second, Burst: 40}:              `"x";q=20;w=1`,
		{Events: 5, Per: time.Minute, Burst: 5}:                `"x";q=5;w=60`,
		{Events: 10, Per: 100 * time.Millisecond, Burst: 1}:    `"x";q=100;w=1`,
		{Events: 3, Per: 1500 * time.Millisecond, Burst: 3}:    `"x";q=4;w=2`,
		{Events: 1_000_000_000, Per: time.Second, Burst: 1000}: `"x";q=1000000000;w=1`,
	} {
		require.Equal(t, want, rate.policy("x"))
	}
}

func TestRateNamesWhatIsWrong(t *testing.T) {
	for want, r := range map[string]Rate{
		"0 events":            {Per: time.Second, Burst: 1},
		"1000000001 events":   {Events: 1_000_000_001, Per: time.Second, Burst: 1},
		"1/1µs":               {Events: 1, Per: time.Microsecond, Burst: 1},
		"1/24h0m0.000000001s": {Events: 1, Per: 24*time.Hour + 1, Burst: 1},
		"burst 0":             {Events: 1, Per: time.Second},
	} {
		require.ErrorContains(t, r.Validate(), want)
	}
	require.NoError(t, perSecond(1, 1).Validate())
	require.NoError(t, perSecond(1, 1).ValidateShared())
	require.NoError(t, perSecond(20_000, 400).ValidateShared())
	require.ErrorContains(t, perSecond(20_000, 399).ValidateShared(), "burst 399: must be 400 or more")
	require.ErrorContains(t, perSecond(1, 0).ValidateShared(), "burst 0")
}

// BenchmarkAll is all local limits for a call that passes them.
func BenchmarkAll(b *testing.B) {
	c := config(map[Level]Limit{
		IP: {Rate: perSecond(1e9, 1e9)}, Total: {Rate: perSecond(1e9, 1e9)}, SharedTotal: {Rate: perSecond(1e9, 1e9)},
		User: {Rate: perSecond(1e9, 1e9)}, Activity: {Rate: perSecond(1e9, 1e9)},
	})
	l := using(c)
	lease := NewLease(func(_ context.Context, _ Rate, n int) (Taken, error) { return Taken{Tokens: n}, nil },
		func(f func(context.Context)) bool { f(context.Background()); return true }, time.Now, new(LeaseStats))
	from := addr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		v := l.Enter(from, now).Then(l.Lease(SharedTotal, "", lease, now))
		v = v.Then(l.User("alice", now)).Then(l.Activity("1001", now))
		if !v.In() {
			b.Fatal(v)
		}
	}
}
