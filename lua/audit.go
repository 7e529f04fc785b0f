package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed audit.lua
	auditSource string
	auditScript = redis.NewScript(runidSource + auditSource)
)

// Audit reads an activity and its counters at one instant; false when the
// product has none. What cannot be read is zero and makes it Damaged.
func Audit(ctx context.Context, c redis.Scripter, product string) (Snapshot, bool, error) {
	cmd, err := run(ctx, c, auditScript, product)
	if err != nil {
		return Snapshot{}, false, fmt.Errorf("auditing product %.80q: %w", product, err)
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 20 {
		return Snapshot{}, false, fmt.Errorf("auditing product %s: %w: %v", product, ErrReply, cmd.Val())
	}
	var ints [5]int64
	var texts [15]string
	for i, v := range reply {
		var ok bool
		if i < len(ints) {
			ints[i], ok = v.(int64)
		} else {
			texts[i-len(ints)], ok = v.(string)
		}
		if !ok {
			return Snapshot{}, false, fmt.Errorf("auditing product %s: %w: value %d is %v", product, ErrReply, i, v)
		}
	}
	if ints[0] == 0 {
		return Snapshot{}, false, nil
	}
	s := readSnapshot(texts[:])
	s.ProductID = product
	s.Now, s.Outbox, s.Users = time.UnixMilli(ints[2]), ints[3], ints[4]
	s.Damaged = s.Damaged || ints[1] != 0 || s.Users == 0 && s.Frozen+s.Sold > 0
	return s, true, nil
}

// readSnapshot reads stock, frozen, sold, id, title, start, end, total, limit,
// pay, state, epoch, run, changes and the server's run id.
func readSnapshot(f []string) Snapshot {
	var s Snapshot
	number := func(text string) int64 {
		n, ok := parseNumber(text, latest)
		s.Damaged = s.Damaged || !ok
		return n
	}
	s.Available, s.Frozen, s.Sold = number(f[0]), number(f[1]), number(f[2])
	s.ID, s.Title = f[3], f[4]
	s.Start, s.End = time.UnixMilli(number(f[5])), time.UnixMilli(number(f[6]))
	s.Total, s.Limit = number(f[7]), int(number(f[8]))
	s.PayWindow = time.Duration(number(f[9])) * time.Millisecond
	s.State, s.Epoch, s.RunID = ActivityState(f[10]), number(f[11]), f[12]
	if f[13] != "" { // an older program writes none
		s.Changes = number(f[13])
	}
	s.ServerRun = f[14]
	if s.ID == "" || !s.State.valid() || s.Available+s.Frozen+s.Sold != s.Total {
		s.Damaged = true
	}
	return s
}

// parseNumber reads what Redis stores as a counter: digits without sign or
// leading zero, 0 to limit.
func parseNumber(text string, limit int64) (int64, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' || (text[0] == '0' && text != "0") {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > limit {
		return 0, false
	}
	return n, true
}
