package fence

import (
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// Needs says in words why the stock of an activity has to be proven; empty if it
// has not. certain is false for what may be an operator's step in progress: look
// again a moment later. there is false if Redis has nothing of the product.
func Needs(a store.Activity, s lua.Snapshot, there bool) (why string, certain bool) {
	if a.State != store.Open && a.State != store.Held {
		return "", false
	}
	switch {
	case !there:
		return "Redis has lost the activity", true
	case s.ID != "" && s.ID != a.ID:
		return "Redis has another activity, " + s.ID, false
	case s.State == lua.Closed:
		return "", false // SQL follows
	case s.RunID == lua.Unproven:
		return "its stock has not been proven yet", true
	case s.Damaged:
		return "a key in Redis is missing or damaged", true
	case s.RunID == "" && s.State == lua.OnHold:
		// Preheated and never opened.
		if a.Reserved > s.Frozen+s.Sold {
			return "Redis has forgotten orders", true
		}
		if a.State == store.Open {
			return "Redis has forgotten that it was opened", false
		}
		return "", false
	case !s.Proven():
		return "Redis was restarted or failed over", true
	case !sameTerms(a, s):
		return "Redis sells under other terms than SQL has: " + terms(s.Start, s.End, s.Limit, s.PayWindow), false
	}
	return "", false
}

// sameTerms compares what nothing changes in the life of an activity.
func sameTerms(a store.Activity, s lua.Snapshot) bool {
	return s.Start.Equal(a.Start) && s.End.Equal(a.End) && s.Limit == a.Limit && s.PayWindow == a.PayWindow
}

func terms(start, end time.Time, limit int, payWindow time.Duration) string {
	return fmt.Sprintf("from %s to %s, %d for each buyer, paid within %v",
		start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339), limit, payWindow)
}
