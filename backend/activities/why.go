package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// proving says where the proof of the activity's stock stands; empty if it is
// proven.
func (s *Service) proving(ctx context.Context, v View) string {
	if v.State != store.Open && v.State != store.Held || v.Snapshot != nil && v.Snapshot.Proven() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if words, err := lua.FenceNote(ctx, s.Redis, v.ProductID); err == nil && words != "" {
		return "unavailable until its stock is proven: " + words
	}
	return ""
}

// why explains a sale to the one who has to answer for it.
func (s *Service) why(a store.Activity, snapshot *lua.Snapshot) string {
	now := s.Now()
	switch {
	case a.State == store.Closed:
		return whyClosed(a, snapshot)
	case a.Target != 0:
		return fmt.Sprintf("its total is being changed to %d; a backend (seckilld serve) finishes that by itself", a.Target)
	case snapshot == nil && a.State == store.Scheduled && a.Manual:
		return "scheduled: its stock is not in Redis yet; preheat it"
	case a.State == store.Scheduled && !a.Manual:
		return "scheduled: a backend (seckilld serve) preheats and opens it " + s.opening(a, now)
	case snapshot == nil:
		return "Redis has lost it: nothing is sold until a backend (seckilld serve) has rebuilt its stock, which it does by itself"
	case snapshot.Damaged:
		return "a key in Redis is missing or damaged: nothing is sold until a backend (seckilld serve) has rebuilt its stock, which it does by itself"
	case a.State == store.Scheduled:
		return "preheated, but SQL does not know yet; preheat again"
	case snapshot.State == lua.Closed:
		return "closed in Redis, not in SQL yet; close it again"
	case snapshot.Forgetful():
		return "Redis was restarted or failed over: nothing is sold until a backend (seckilld serve) has proven its stock, which it does by itself"
	case snapshot.State == lua.OnHold && a.State == store.Open:
		return "unavailable: its stock has to be proven first, which a backend (seckilld serve) does by itself; if it stays so, audit it, then open it again"
	case snapshot.State == lua.OnHold:
		return "held by an operator: nothing is sold until it is opened"
	case a.State == store.Held:
		return "open in Redis though it should be held; hold it again"
	case now.Before(a.Start):
		return "open, starts at " + a.Start.UTC().Format(time.RFC3339)
	case !now.Before(a.End):
		return "ended at " + a.End.UTC().Format(time.RFC3339) + "; a backend (seckilld serve) closes it when its orders are stored"
	case snapshot.Available == 0 && snapshot.Frozen > 0:
		return "every unit is reserved; what is cancelled or expires comes back"
	case snapshot.Available == 0:
		return "sold out"
	}
	return "selling"
}

// opening says when a backend makes an activity ready.
func (s *Service) opening(a store.Activity, now time.Time) string {
	at := a.Start.Add(-s.Ahead)
	if !now.Before(at) {
		return "at once"
	}
	words := fmt.Sprintf("at %s, %v ahead of its start", at.UTC().Format(time.RFC3339), s.Ahead)
	if s.aheadGuessed {
		words += " unless its --preheat-ahead says otherwise"
	}
	return words
}

func whyClosed(a store.Activity, snapshot *lua.Snapshot) string {
	const over = "closed: over for good"
	switch {
	case !a.ArchivedAt.IsZero():
		return over + ", archived at " + a.ArchivedAt.UTC().Format(time.RFC3339)
	case snapshot != nil && snapshot.Frozen+snapshot.Outbox > 0:
		return fmt.Sprintf("%s; archived when its last orders are stored and paid, cancelled or expired: %d units frozen, %d orders in the outbox",
			over, snapshot.Frozen, snapshot.Outbox)
	}
	return over + "; archived when everything is settled"
}
