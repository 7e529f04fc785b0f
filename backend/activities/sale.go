package activities

import (
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// saleAt is where the sale stands at now, in the word that buyers are shown, too: Redis's
// if it has the activity, because edges go by that.
func (v View) saleAt(now time.Time) lua.SaleState {
	switch {
	case v.State == store.Closed:
		return lua.SaleClosed
	case v.Snapshot != nil:
		// Edges sell nothing on a stock that is not proven, and have no news then.
		return v.Snapshot.Sale(!v.Snapshot.Forgetful())
	case !now.Before(v.End):
		return lua.SaleEnded
	case v.State == store.Held:
		return lua.SaleHeld
	case now.Before(v.Start):
		return lua.SaleScheduled
	case v.State == store.Scheduled && v.Manual:
		return lua.SaleHeld // nobody has opened it
	}
	return lua.SaleUnavailable
}
