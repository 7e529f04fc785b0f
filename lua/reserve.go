package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed reserve.lua
	reserveSource string
	reserveScript = redis.NewScript(recordSource + runidSource + reserveSource)
)

// Reserve decides on 1 to MaxPerCall requests for one product in one atomic
// step, with the same outcome as one after the other in their order. epoch is
// the activity's as the caller knows it.
//
// For each request the first of these holds that applies:
//
//	BadArguments   quantity not 1 to 999 or above the limit per user, order id or user id malformed
//	Reserved       another order of the buyer has this key and quantity: a Repeat; nothing changes
//	KeyReused      an order of this key has another quantity
//	Reserved       the buyer's record has this order id already, in whatever state: Earlier; nothing changes
//	NoProduct      no activity
//	Unavailable    the buyer's record is damaged
//	NoTicket       eight orders of the buyer were given back, all with greater ids: it may be one that is forgotten
//	Unavailable    counters or activity damaged
//	Ended          closed
//	Held           an operator holds it
//	Unavailable    held until its stock is proven, or another epoch
//	NotStarted     before the start
//	Ended          at the end or after
//	Unavailable    the server is not the one the activity was opened on: its stock is not proven
//	Unavailable    too late, see ReserveUntil
//	AlreadyBought  the units the buyer holds and the quantity exceed the limit per user
//	SoldOut        no unit left
//	TooFew         fewer units left than asked for
//	Reserved       the units are the buyer's, and the order is in the outbox
//
// An error means that the fate of the requests is unknown. Asking again with the
// same order ids is harmless.
func Reserve(ctx context.Context, c redis.Scripter, product string, epoch int64, reqs []Request) (Batch, error) {
	return ReserveUntil(ctx, c, product, epoch, time.Time{}, reqs)
}

// ReserveUntil is Reserve with a last moment, by the server's clock; the zero time
// is never. A call that comes later reserves nothing: what it would have reserved
// is Unavailable. So a caller that stood still, or whose network did, cannot reserve for
// somebody who was told meanwhile that nothing has become of his order.
func ReserveUntil(ctx context.Context, c redis.Scripter, product string, epoch int64, until time.Time, reqs []Request) (Batch, error) {
	n := len(reqs)
	if n == 0 || n > MaxPerCall {
		return Batch{}, fmt.Errorf("reserving units of product %s: %d requests, want 1 to %d", product, n, MaxPerCall)
	}
	args := make([]any, 2+3*n)
	args[0], args[1] = strconv.FormatInt(epoch, 10), "0"
	if !until.IsZero() {
		args[1] = strconv.FormatInt(max(1, until.UnixMilli()), 10)
	}
	for i := range reqs {
		args[2+i] = reqs[i].UserID
		args[2+n+i] = reqs[i].OrderID
		args[2+2*n+i] = strconv.Itoa(reqs[i].Quantity)
		if reqs[i].Key != "" {
			args[2+2*n+i] = strconv.Itoa(reqs[i].Quantity) + ":" + reqs[i].Key
		}
	}
	cmd, err := run(ctx, c, reserveScript, product, args...)
	if err != nil {
		return Batch{}, fmt.Errorf("reserving units of product %s for %d requests: %w", product, n, err)
	}
	reply, err := cmd.Slice()
	if err == nil && len(reply) != 5+n {
		err = fmt.Errorf("%w: %d values, want %d", ErrReply, len(reply), 5+n)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("reading what reserve.lua answered for product %s: %w", product, err)
	}
	return readBatch(reply)
}

func readBatch(reply []any) (Batch, error) {
	id, ok1 := reply[0].(string)
	epoch, ok2 := reply[1].(string)
	state, ok3 := reply[2].(string)
	now, ok4 := reply[3].(int64)
	left, ok5 := reply[4].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return Batch{}, fmt.Errorf("%w: reserve.lua says %v", ErrReply, reply[:5])
	}
	b := Batch{
		ActivityID: id,
		State:      ActivityState(state),
		At:         time.UnixMilli(now),
		Available:  left,
		Results:    make([]Result, len(reply)-5),
	}
	b.Epoch, _ = strconv.ParseInt(epoch, 10, 64) // unreadable: 0, and every outcome says so
	for i, answer := range reply[5:] {
		switch a := answer.(type) {
		case string:
			r, err := readNamed(a)
			if err != nil {
				return Batch{}, err
			}
			b.Results[i] = r
		case int64:
			switch {
			case a > 0:
				b.Results[i] = Result{Outcome: Reserved, Claim: int(a)}
			case Outcome(a) >= KeyReused && a < 0 && Outcome(a) != AlreadyBought, Outcome(a) == NoTicket, Outcome(a) == Unavailable:
				b.Results[i] = Result{Outcome: Outcome(a)}
			default:
				return Batch{}, fmt.Errorf("%w: reserve.lua answers %d", ErrReply, a)
			}
		default:
			return Batch{}, fmt.Errorf("%w: reserve.lua answers %v", ErrReply, answer)
		}
	}
	return b, nil
}

// readNamed reads an answer that names an order.
func readNamed(answer string) (Result, error) {
	if first, repeat := strings.CutPrefix(answer, "key:"); repeat {
		return Result{Outcome: Reserved, OrderID: first, Repeat: true}, nil
	}
	text, own := strings.CutPrefix(answer, "own:")
	if !own {
		return Result{Outcome: AlreadyBought, OrderID: answer}, nil
	}
	e, err := parseEntry(text)
	if err != nil {
		return Result{}, fmt.Errorf("%w: reserve.lua answers %.80q: %w", ErrReply, answer, err)
	}
	return Result{Outcome: Reserved, Claim: e.Claim, Earlier: &e}, nil
}
