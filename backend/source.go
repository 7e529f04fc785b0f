package backend

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/lua"
)

// source is what a scrape shows of the stores.
type source struct {
	*Backend

	mu sync.Mutex
	// known are the live activities as the last audits had them, by product.
	known map[string]metrics.Stock
}

func (s *source) Unsettled() int { return s.settler.Pending() }

func (s *source) Depth(ctx context.Context) (waiting, dead int, err error) {
	return s.deps.Broker.Depth(ctx)
}

func (s *source) RefundsDue(ctx context.Context) (int64, error) { return s.deps.Store.RefundsDue(ctx) }

// Unready counts the activities that are due and not ready.
func (s *source) Unready(ctx context.Context) (map[string]int, error) {
	found, err := s.activities.Unready(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, o := range activities.Obstacles {
		counts[string(o)] = found[o]
	}
	return counts, nil
}

// auditShare is the part of a scrape's time that audits may take; the rest is for
// what Redis says alone.
const auditShare = 0.6

// Stocks audits each live activity. While SQL is away those that were live before
// are shown as Redis has them.
func (s *source) Stocks(ctx context.Context) ([]metrics.Stock, error) {
	auditing, cancel := context.WithTimeout(ctx, time.Duration(auditShare*float64(scrapeTimeout)))
	defer cancel()
	audits, err := s.activities.AuditAll(auditing)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		clear(s.known)
	}
	seen := map[string]bool{}
	var stocks []metrics.Stock
	for _, a := range audits {
		stock := metrics.Stock{
			Product: a.ProductID, Total: a.Total, Available: a.Available, Frozen: a.Frozen, Sold: a.Sold, Outbox: a.Outbox, Drift: a.Drift,
			DriftUnknown: !a.QueueKnown,
		}
		stocks, seen[a.ProductID], s.known[a.ProductID] = append(stocks, stock), true, stock
	}
	if err == nil {
		return stocks, nil
	}
	for product, stock := range s.known {
		snapshot, there, failed := lua.Audit(ctx, s.deps.Redis, product)
		if seen[product] || failed != nil || !there {
			continue
		}
		stocks = append(stocks, metrics.Stock{
			Product: product, Total: stock.Total, Available: snapshot.Available, Frozen: snapshot.Frozen, Sold: snapshot.Sold,
			Outbox: snapshot.Outbox, DriftUnknown: true,
		})
	}
	return stocks, fmt.Errorf("auditing for a scrape: %w", err)
}
