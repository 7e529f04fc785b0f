package settle

import (
	"context"

	"github.com/seckill-edge/seckill/lua"
)

// strange tells the log, in one line a call, of stored orders to which what Redis
// has does not fit, and returns how many it does not have because their sale is
// over there: the product's next one has begun, or the keys have expired. A late
// payment, or a message that comes again, is then no surprise.
func (s *Settler) strange(ctx context.Context, p part, moved []lua.Moved) (over int) {
	there, asked, odd, first := "", false, 0, 0
	for i, m := range moved {
		if m != lua.Unknown && m != lua.Conflict {
			continue
		}
		if m == lua.Unknown && p.activities[i] != "" {
			if !asked {
				there, asked = s.activity(ctx, p.product, p.activities[i]), true
			}
			if there != p.activities[i] {
				over++
				continue
			}
		}
		if odd++; odd == 1 {
			first = i
		}
	}
	if odd > 0 {
		s.log.Warn("settle: what Redis has of stored orders does not fit to them; the reconciler looks into it", "product", p.product,
			"orders", odd, "order", p.moves[first].OrderID, "stored_as", p.to, "in_redis", moved[first])
	}
	return over
}

// activity is the id of the activity that Redis has of a product, empty if none,
// and fallback if that cannot be read.
func (s *Settler) activity(ctx context.Context, product, fallback string) string {
	snapshot, _, err := lua.Audit(ctx, s.redis, product)
	if err != nil || snapshot.Damaged {
		return fallback
	}
	return snapshot.ID
}
