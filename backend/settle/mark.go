package settle

import (
	"time"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// MarkOf is the mark in Redis of a row in this state. A created order of an
// activity without payment stage is settled. False for states that are no row's.
func MarkOf(state order.State, payWindow time.Duration) (lua.Mark, bool) {
	switch state {
	case order.Created:
		if payWindow == 0 {
			return lua.MarkSettled, true
		}
		return lua.MarkCreated, true
	case order.Paid:
		return lua.MarkPaid, true
	case order.Rejected:
		return lua.MarkRejected, true
	case order.Cancelled:
		return lua.MarkCancelled, true
	case order.Expired:
		return lua.MarkExpired, true
	case order.Queued:
	}
	return 0, false
}
