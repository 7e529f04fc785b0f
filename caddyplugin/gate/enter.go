package gate

import (
	"context"
	"net/netip"

	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/lua"
)

// Enter asks the lists and limits that need not know who is calling: of the
// client's address, of this edge, of all edges. addr may be the zero Addr: clients
// without an address share one bucket.
func (g *Gate) Enter(addr netip.Addr) limit.Verdict {
	now := g.deps.Now()
	v := g.limits.Enter(addr, now)
	if v.In() {
		v = v.Then(g.limits.Lease(limit.SharedTotal, "", g.lease, now))
	}
	return v
}

// EnterUser asks the limit of a buyer.
func (g *Gate) EnterUser(user string) limit.Verdict { return g.limits.User(user, g.deps.Now()) }

// enterSale asks the limits of a product that has a sale.
func (g *Gate) enterSale(s *sale) limit.Verdict {
	now := g.deps.Now()
	v := g.limits.Activity(s.product, now)
	if v.In() {
		v = v.Then(g.limits.Lease(limit.SharedActivity, s.product, s.lease, now))
	}
	return v
}

// LeaseStats are what the limits that all edges share cost.
type LeaseStats struct {
	// Calls to Redis for tokens, and those that failed.
	Calls, Failures uint64
	// Alone counts what was decided by this edge alone because Redis did not
	// answer, Away for how many limits that is so now.
	Alone uint64
	Away  int
}

func (g *Gate) leaseStats() LeaseStats {
	c := &g.stats.leases
	s := LeaseStats{Calls: c.Calls.Load(), Failures: c.Failures.Load(), Alone: c.Alone.Load()}
	leases := []*limit.Lease{g.lease}
	for _, sale := range g.sales.all() {
		leases = append(leases, sale.lease)
	}
	now := g.deps.Now()
	for _, l := range leases {
		if l.Alone(now) {
			s.Away++
		}
	}
	return s
}

// newLease takes tokens ahead of a limit that all edges share, that of a product
// or, without one, the total.
func (g *Gate) newLease(product string) *limit.Lease {
	take := func(ctx context.Context, r limit.Rate, n int) (limit.Taken, error) {
		got, err := lua.TakeTokens(ctx, g.deps.Redis, product, lua.Quota(r), n)
		return limit.Taken{Tokens: got.Taken, Wait: got.Wait}, err
	}
	return limit.NewLease(take, g.lend, g.deps.Now, &g.stats.leases)
}

// lend runs f until the gate stops; false if it is closed.
func (g *Gate) lend(f func(context.Context)) bool {
	g.sales.mu.RLock()
	defer g.sales.mu.RUnlock()
	if g.sales.closed {
		return false
	}
	g.start(func() { f(g.ctx) })
	return true
}
