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
//	mark:order id:quantity:claim:reserved at (ms)[:key[:reason]]
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
	if len(f) < 5 || len(f) > 7 {
		return Entry{}, fmt.Errorf("%d fields, want 5 to 7", len(f))
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
	e := Entry{
		Mark: Mark(f[0][0]), OrderID: f[1], Quantity: int(quantity), Claim: int(claim), At: time.UnixMilli(ms),
	}
	if len(f) > 5 {
		if e.Key = f[5]; !validKey(e.Key) && (e.Key != "" || len(f) == 6) {
			return Entry{}, errors.New("the key is none")
		}
	}
	if len(f) == 7 {
		if len(f[6]) == 1 {
			e.Reason = reasonsByLetter[f[6][0]]
		}
		if e.Reason == "" || e.Mark != MarkRejected {
			return Entry{}, errors.New("the reason is none of a rejection")
		}
	}
	return e, nil
}

// Aged says that an order was reserved at least patience ago. It is old, too, if it
// was reserved that long after now: the server's clock has gone back since, and
// nobody is to wait until it has caught up.
func (e Entry) Aged(now time.Time, patience time.Duration) bool {
	return now.Sub(e.At).Abs() >= patience
}

// FindOrder reads one order of a record and leaves the rest unread; false if the
// record has none of this id. id must be valid.
func FindOrder(record, id string) (Entry, bool, error) {
	at := strings.Index(record, ":"+id+":")
	if at < 0 {
		return Entry{}, false, nil
	}
	begin := strings.LastIndexByte(record[:at], ',') + 1
	end := len(record)
	if comma := strings.IndexByte(record[at:], ','); comma >= 0 {
		end = at + comma
	}
	e, err := parseEntry(record[begin:end])
	if err == nil && e.OrderID != id {
		err = errors.New("the order id stands in another field")
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("order %s in a buyer's record, %.80q: %w", id, record[begin:end], err)
	}
	return e, true, nil
}

// FindKey reads the order that was reserved under a key; false if the record has
// none. key must be what HashKey made.
func FindKey(record, key string) (Entry, bool, error) {
	for part := range strings.SplitSeq(record, ",") {
		if !strings.Contains(part, ":"+key) {
			continue
		}
		e, err := parseEntry(part)
		if err != nil {
			return Entry{}, false, fmt.Errorf("entry of a buyer's record, %.80q: %w", part, err)
		}
		if e.Key == key {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
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
		if letter, ok := letterOf(e.Reason); ok {
			out = append(out, ':')
			out = append(out, e.Key...)
			out = append(out, ':', letter)
		} else if e.Key != "" {
			out = append(out, ':')
			out = append(out, e.Key...)
		}
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

// RecordTexts reads the records of many buyers at one instant as they are
// stored, one a user in their order; empty for one who has none.
func RecordTexts(ctx context.Context, c redis.Cmdable, product string, users []string) ([]string, error) {
	values, err := c.HMGet(ctx, KeysOf(product).Users, users...).Result()
	if err != nil {
		return nil, fmt.Errorf("reading the records of %d users of product %s: %w", len(users), product, err)
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i], _ = v.(string)
	}
	return texts, nil
}
