package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

var (
	//go:embed refuse.lua
	refuseSource string
	refuseScript = redis.NewScript(refuseSource)
)

// MaxRefusals bounds the notes of one product. Beyond it nothing further is noted
// until the oldest are past their time.
const MaxRefusals = 1 << 16

// Refusal is how an order ended that was told "queued" and that no record has.
type Refusal struct {
	OrderID  string
	Quantity int
	// Reason says why it was refused. It is empty if Instead is given.
	Reason order.Reason
	// Instead is the order that the buyer has in place of this one.
	Instead string
}

// RefusalNote is a Refusal to be noted.
type RefusalNote struct {
	Refusal
	UserID string
	// Until is the last moment, by the server's clock, at which it may be noted:
	// later its buyer may have been told that the order is lost.
	Until time.Time
}

// word is a refusal as it is stored behind the order id.
func (r Refusal) word() string {
	word := string(r.Reason)
	if r.Instead != "" {
		word = r.Instead
	}
	return strconv.Itoa(r.Quantity) + ":" + word
}

// readRefusal reads what word wrote; the zero Refusal if text is nothing of the kind.
func readRefusal(id, text string) Refusal {
	quantity, word, _ := strings.Cut(text, ":")
	n, ok := parseNumber(quantity, order.MaxQuantity)
	switch {
	case !ok || n == 0 || word == "" || len(word) > maxReason:
		return Refusal{}
	case order.ValidID(word):
		return Refusal{OrderID: id, Quantity: int(n), Instead: word}
	case strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") != "":
		return Refusal{}
	}
	return Refusal{OrderID: id, Quantity: int(n), Reason: order.Reason(word)}
}

// maxReason is the longest reason that a note may have, in bytes.
const maxReason = 32

// NoteRefusals notes 1 to MaxPerCall refusals for every edge to read, in one atomic
// step, and returns what stands for each, in their order: what was noted first. It is
// the zero Refusal where nothing is noted, which no later call changes: the buyer's
// record has the order, the note comes too late, or the product has MaxRefusals notes.
// A note stays for at least keep.
//
// An error means that nobody knows what is noted. Noting again is harmless.
func NoteRefusals(ctx context.Context, c redis.Scripter, product string, keep time.Duration, notes []RefusalNote) ([]Refusal, error) {
	return noteRefusals(ctx, c, product, MaxRefusals, keep, notes)
}

func noteRefusals(ctx context.Context, c redis.Scripter, product string, most int, keep time.Duration, notes []RefusalNote) ([]Refusal, error) {
	n := len(notes)
	if n == 0 || n > MaxPerCall || !order.ValidProduct(product) || keep < time.Millisecond {
		return nil, fmt.Errorf("noting %d refusals of product %.80q for %v: want 1 to %d, a product id, and a millisecond at least", n, product, keep, MaxPerCall)
	}
	args := make([]any, 2+4*n)
	args[0], args[1] = strconv.Itoa(most), strconv.FormatInt(keep.Milliseconds(), 10)
	for i, note := range notes {
		args[2+i], args[2+n+i] = note.OrderID, note.UserID
		args[2+2*n+i] = strconv.FormatInt(max(0, note.Until.UnixMilli()), 10)
		args[2+3*n+i] = note.word()
	}
	k := KeysOf(product)
	words, err := refuseScript.Run(ctx, c, []string{k.Refused, k.Users}, args...).StringSlice()
	if err == nil && len(words) != n {
		err = fmt.Errorf("%w: %d values, want %d", ErrReply, len(words), n)
	}
	if err != nil {
		return nil, fmt.Errorf("noting %d refusals of product %s: %w", n, product, err)
	}
	stand := make([]Refusal, n)
	for i, word := range words {
		stand[i] = readRefusal(notes[i].OrderID, word)
	}
	return stand, nil
}

// RefusalsOf reads what is noted of orders, one a order id in their order; the zero
// Refusal for one of which nothing is noted that can be read.
func RefusalsOf(ctx context.Context, c redis.Cmdable, product string, orderIDs []string) ([]Refusal, error) {
	key := KeysOf(product).Refused
	reads := make([]*redis.StringSliceCmd, len(orderIDs))
	_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error { // each read has its own answer
		for i, id := range orderIDs {
			reads[i] = p.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: "[" + id + ":", Max: "(" + id + ";", Count: 1})
		}
		return nil
	})
	refusals := make([]Refusal, len(orderIDs))
	for i, read := range reads {
		found, err := read.Result()
		if err != nil && !wrongType(err) {
			return nil, fmt.Errorf("reading how %d orders of product %s ended: %w", len(orderIDs), product, err)
		}
		if len(found) > 0 {
			refusals[i] = readRefusal(orderIDs[i], strings.TrimPrefix(found[0], orderIDs[i]+":"))
		}
	}
	return refusals, nil
}
