package compare

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// part is about how many records, and how many rows, are read at once.
	part = 500
	// workers compare parts at the same time.
	workers     = 3
	callTimeout = 10 * time.Second
	// edgeClock is how far the clock of an edge, which makes the ids, may be ahead
	// of Redis's.
	edgeClock = 10 * time.Second
)

// Sides are the two stores.
type Sides struct {
	Redis redis.UniversalClient
	Store *store.Store
}

// Look is one comparison of an activity. Memory is bounded but for about 40
// bytes a buyer.
type Look struct {
	Activity store.Activity
	// Patience: orders younger than this count as on their way.
	Patience time.Duration
	// Found is told of differences, part by part, one call at a time. An error
	// ends the comparison.
	Found func(ctx context.Context, found []Difference) error
	// Progress, if set, is told how far it is, 0 to 1.
	Progress func(done float64)
}

// Result is what a whole comparison has counted.
type Result struct {
	// Units are what the records that can be read say; Available is the rest of
	// the total, and may be negative.
	Units lua.Units
	// Buyers and Entries are records and the orders in them; Live, those of them that
	// hold stock; Rows, the orders in SQL that do.
	Buyers, Entries, Live, Rows int64
	// OnTheWay is the number of orders too young to be judged.
	OnTheWay int64
}

// look is one comparison under way.
type look struct {
	Sides
	Look
	now    time.Time
	expect int64 // records and rows, for Progress

	mu      sync.Mutex
	result  Result
	matched int64 // rows that hold stock and stand in a record
	damaged bool
	read    int64
}

// Run compares once. Under load it sees each order at another moment: a
// difference is certain only if it is still there at a second look.
func (s Sides) Run(ctx context.Context, l Look) (Result, error) {
	snapshot, _, err := audit(ctx, s.Redis, l.Activity.ProductID)
	if err != nil {
		return Result{}, err
	}
	before, err := s.liveRows(ctx, l.Activity.ID)
	if err != nil {
		return Result{}, err
	}
	c := &look{Sides: s, Look: l, now: snapshot.Now, expect: max(1, snapshot.Users)}
	if err := c.records(ctx); err != nil {
		return Result{}, err
	}
	after, err := s.liveRows(ctx, l.Activity.ID)
	if err != nil {
		return Result{}, err
	}
	// Every row has been met in a record, and none has come meanwhile: there is
	// none that Redis does not know.
	if c.damaged || before != c.matched || after != before {
		c.expect += after
		if err := c.rows(ctx); err != nil {
			return Result{}, err
		}
	}
	c.result.Rows = after
	c.result.Units.Available = l.Activity.Total - c.result.Units.Frozen - c.result.Units.Sold
	return c.result, nil
}

func audit(ctx context.Context, c redis.UniversalClient, product string) (lua.Snapshot, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.Audit(ctx, c, product)
}

func (s Sides) liveRows(ctx context.Context, activity string) (n int64, err error) {
	totals, err := s.Store.Totals(ctx, activity)
	if err != nil {
		return 0, err
	}
	for state, total := range totals {
		if live(state) {
			n += total.Orders
		}
	}
	return n, nil
}

// records goes through all records of Redis.
func (c *look) records(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	parts := make(chan map[string]string, workers)
	group.Go(func() error {
		defer close(parts)
		return duty.Safely(func() error { return c.scan(ctx, parts) })
	})
	for range workers {
		group.Go(func() error {
			for records := range parts {
				if err := duty.Safely(func() error { return c.compareRecords(ctx, records) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("comparing the buyers of product %s: %w", c.Activity.ProductID, err)
	}
	return nil
}

// scan hands out every record once: HSCAN may show one twice, and its units would
// count twice.
func (c *look) scan(ctx context.Context, parts chan<- map[string]string) error {
	seed := maphash.MakeSeed()
	seen := make(map[uint64]struct{})
	for cursor := uint64(0); ; {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		records, next, err := lua.BuyersScan(asking, c.Redis, c.Activity.ProductID, cursor, part)
		cancel()
		if err != nil {
			return err
		}
		for user := range records {
			hash := maphash.String(seed, user)
			if _, twice := seen[hash]; twice {
				delete(records, user)
			}
			seen[hash] = struct{}{}
		}
		select {
		case parts <- records:
		case <-ctx.Done():
			return ctx.Err()
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// rows goes through all orders of SQL and looks for those that no record has. It
// ends at those made after it began: a fast sale would have it run for ever.
func (c *look) rows(ctx context.Context) error {
	for after := store.FirstCursor(c.Activity); ; {
		rows, err := c.Store.OrdersAfter(ctx, c.Activity.ID, after, part)
		if err == nil {
			err = c.compareRows(ctx, rows)
		}
		if err != nil {
			return fmt.Errorf("comparing the orders of product %s: %w", c.Activity.ProductID, err)
		}
		if len(rows) < part {
			return nil
		}
		after = rows[len(rows)-1].ID
		if made, ok := order.IDTime(after); ok && made.After(c.now.Add(edgeClock)) {
			return nil
		}
	}
}

// tell adds what one part has counted and hands on its differences.
func (c *look) tell(ctx context.Context, part Result, matched, read int64, found []Difference) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Units.Frozen += part.Units.Frozen
	c.result.Units.Sold += part.Units.Sold
	c.result.Buyers += part.Buyers
	c.result.Entries += part.Entries
	c.result.Live += part.Live
	c.result.OnTheWay += part.OnTheWay
	c.matched += matched
	c.read += read
	if c.Progress != nil {
		c.Progress(min(1, float64(c.read)/float64(c.expect)))
	}
	if len(found) == 0 {
		return nil
	}
	for _, d := range found {
		c.damaged = c.damaged || d.Kind == DamagedRecord
	}
	return c.Found(ctx, found)
}
