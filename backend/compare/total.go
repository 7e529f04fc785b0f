package compare

import (
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Total is the total that an activity has to have in Redis: SQL's, or while it is
// being changed, whichever of both it has there. a is read while Redis stood still.
func Total(a store.Activity, s lua.Snapshot) int64 {
	if a.Target != 0 && !s.Damaged && s.ID == a.ID {
		return s.Total
	}
	return a.Total
}
