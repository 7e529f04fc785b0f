package limit

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of a Rate.
const (
	maxEvents = 1_000_000_000
	maxPer    = 24 * time.Hour
)

// Rate is a token bucket: Events tokens come back every Per, one after the other,
// and up to Burst lie in it.
type Rate struct {
	Events int
	Per    time.Duration
	Burst  int
}

// Validate names what is out of bounds.
func (r Rate) Validate() error {
	switch {
	case r.Events < 1 || r.Events > maxEvents:
		return fmt.Errorf("%d events: must be 1 to %d", r.Events, maxEvents)
	case r.Per < time.Millisecond || r.Per > maxPer:
		return fmt.Errorf("%d/%v: the duration must be 1ms to 24h", r.Events, r.Per)
	case r.Burst < 1 || r.Burst > maxEvents:
		return fmt.Errorf("burst %d: must be 1 to %d", r.Burst, maxEvents)
	}
	return nil
}

// ValidateShared is Validate for a limit that all edges share. As they take tokens
// ahead, each at most every 5 ms, a burst of less than 20 ms would lie idle
// between.
func (r Rate) ValidateShared() error {
	if err := r.Validate(); err != nil {
		return err
	}
	if least := int(float64(r.perSecond()) * 4 * askGap.Seconds()); r.Burst < least {
		return fmt.Errorf("burst %d: must be %d or more, what comes in 20ms, as edges take tokens ahead", r.Burst, least)
	}
	return nil
}

func (r Rate) perSecond() rate.Limit { return rate.Limit(float64(r.Events) / r.Per.Seconds()) }

func (r Rate) bucket() *rate.Limiter { return rate.NewLimiter(r.perSecond(), r.Burst) }

// adjust gives a bucket another rate. What is in it stays.
func (r Rate) adjust(b *rate.Limiter, now time.Time) {
	b.SetLimitAt(now, r.perSecond())
	b.SetBurstAt(now, r.Burst)
}

// policy is a RateLimit-Policy member. Its window is in whole seconds.
func (r Rate) policy(name string) string {
	window := (r.Per + time.Second - 1) / time.Second
	quota := float64(r.perSecond()) * float64(window)
	return `"` + name + `";q=` + strconv.FormatInt(max(1, int64(quota+0.5)), 10) + ";w=" + strconv.FormatInt(int64(window), 10)
}

// take takes a token at now; without one it says how long until there is one.
func take(b *rate.Limiter, now time.Time) (ok bool, wait time.Duration) {
	if b.AllowN(now, 1) {
		return true, 0
	}
	return false, max(1, lack(b, now))
}

// lack says how long until a token is there, 0 or less if one is.
func lack(b *rate.Limiter, now time.Time) time.Duration {
	return time.Duration((1 - b.TokensAt(now)) / float64(b.Limit()) * float64(time.Second))
}
