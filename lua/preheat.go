package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed preheat.lua
	preheatSource string
	preheatScript = redis.NewScript(recordSource + changesSource + runidSource + preheatSource)
)

// Preheated is what became of a Preheat.
type Preheated int

// The results of Preheat.
const (
	Loaded       Preheated = 1  // the activity is in Redis now
	AlreadyThere Preheated = 0  // it was there before; nothing changed
	Refused      Preheated = -1 // something else is there that must not be overwritten
)

// Preheat puts an activity into Redis with all its units available, never over a
// live sale: it is Refused while another activity of the product is there that
// is not closed and fully settled (no unit frozen, outbox empty), and when keys
// of the product are there without an activity. The finished predecessor's
// records are removed.
//
// An empty State means Open. Epoch and RunID of a are not read: the epoch is one
// above the predecessor's, and an open activity gets the run id of the server
// that the script runs on.
func Preheat(ctx context.Context, c redis.Scripter, a Activity) (Preheated, error) {
	if a.State == "" {
		a.State = Open
	}
	if err := checkActivity(a); err != nil {
		return Refused, fmt.Errorf("preheating activity %.80q of product %.80q: %w", a.ID, a.ProductID, err)
	}
	cmd, err := run(ctx, c, preheatScript, a.ProductID, append(activityArgs(a), string(a.State))...)
	if err != nil {
		return Refused, fmt.Errorf("preheating activity %s of product %s: %w", a.ID, a.ProductID, err)
	}
	code, err := cmd.Int64()
	if p := Preheated(code); err == nil && p >= Refused && p <= Loaded {
		return p, nil
	}
	return Refused, fmt.Errorf("preheating activity %s of product %s: %w: %v", a.ID, a.ProductID, ErrReply, cmd.Val())
}

// latest is the last millisecond a record can hold, in the year 10889.
const latest = 1<<48 - 1

func checkActivity(a Activity) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !order.ValidProduct(a.ID) {
		wrong("the activity id must have 1 to %d of A-Z a-z 0-9 _ -", order.MaxProductBytes)
	}
	if !order.ValidTime(a.Start) || !order.ValidTime(a.End) || a.Start.UnixMilli() >= a.End.UnixMilli() {
		wrong("start %v and end %v: the end must be at least a millisecond after the start, both in the years 1970 to 9999", a.Start, a.End)
	}
	if a.Total < 1 || a.Total > order.MaxUnits {
		wrong("total %d, want 1 to %d", a.Total, order.MaxUnits)
	}
	if a.Limit < 1 || a.Limit > order.MaxQuantity {
		wrong("limit per user %d, want 1 to %d", a.Limit, order.MaxQuantity)
	}
	if a.PayWindow < 0 {
		wrong("pay window %v, want 0 or more", a.PayWindow)
	}
	if !a.State.valid() {
		wrong("state %q, want %q, %q or %q", a.State, Open, OnHold, Closed)
	}
	return errors.Join(errs...)
}
