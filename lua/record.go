package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
)

// ParseRecord reads a buyer's record: one entry an order, joined by commas,
//
//	mark:order id:quantity:claim:reserved at (ms)
//
// Entries stand in the order of reservation, but those that have given their
// units back are behind the others that were there at that moment.
func ParseRecord(record string) ([]Entry, error) {
	parts := strings.Split(record, ",")
	entries := make([]Entry, len(parts))
	for i, part := range parts {
		e, err := parseEntry(part)
		if err != nil {
			return nil, fmt.Errorf("entry %d of a buyer's record, %.80q: %w", i+1, part, err)
		}
		entries[i] = e
	}
	return entries, nil
}

func parseEntry(text string) (Entry, error) {
	f := strings.Split(text, ":")
	if len(f) != 5 {
		return Entry{}, fmt.Errorf("%d fields, want 5", len(f))
	}
	if len(f[0]) != 1 || !Mark(f[0][0]).valid() {
		return Entry{}, errors.New("unknown mark")
	}
	if !order.ValidID(f[1]) {
		return Entry{}, errors.New("the order id is none")
	}
	quantity, ok := parseNumber(f[2], order.MaxQuantity)
	if !ok || quantity == 0 {
		return Entry{}, fmt.Errorf("quantity, want 1 to %d", order.MaxQuantity)
	}
	claim, ok := parseNumber(f[3], order.MaxQuantity)
	if !ok || claim == 0 {
		return Entry{}, fmt.Errorf("claim, want 1 to %d", order.MaxQuantity)
	}
	ms, ok := parseNumber(f[4], latest)
	if !ok {
		return Entry{}, errors.New("the time is no number of milliseconds")
	}
	return Entry{
		Mark: Mark(f[0][0]), OrderID: f[1], Quantity: int(quantity), Claim: int(claim), At: time.UnixMilli(ms),
	}, nil
}

// FormatRecord writes what ParseRecord reads. The entries must be valid.
func FormatRecord(entries []Entry) string {
	var out []byte
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, byte(e.Mark), ':')
		out = append(out, e.OrderID...)
		out = append(out, ':')
		out = strconv.AppendInt(out, int64(e.Quantity), 10)
		out = append(out, ':')
		out = strconv.AppendInt(out, int64(e.Claim), 10)
		out = append(out, ':')
		out = strconv.AppendInt(out, e.At.UnixMilli(), 10)
	}
	return string(out)
}

func (m Mark) valid() bool {
	return strings.IndexByte("qcspxre", byte(m)) >= 0
}

// RecordOf reads a buyer's record; no entries if he has none.
func RecordOf(ctx context.Context, c redis.Cmdable, product, user string) ([]Entry, error) {
	text, err := c.HGet(ctx, KeysOf(product).Users, user).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	var entries []Entry
	if err == nil {
		entries, err = ParseRecord(text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of user %q of product %s: %w", user, product, err)
	}
	return entries, nil
}

// Records reads the records of many buyers at one instant, one slice a user in
// their order; no entries for one who has none.
func Records(ctx context.Context, c redis.Cmdable, product string, users []string) ([][]Entry, error) {
	if len(users) == 0 {
		return nil, nil
	}
	texts, err := c.HMGet(ctx, KeysOf(product).Users, users...).Result()
	if err != nil {
		return nil, fmt.Errorf("reading the records of %d users of product %s: %w", len(users), product, err)
	}
	records := make([][]Entry, len(users))
	for i, v := range texts {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if records[i], err = ParseRecord(text); err != nil {
			return nil, fmt.Errorf("reading the record of user %q of product %s: %w", users[i], product, err)
		}
	}
	return records, nil
}
