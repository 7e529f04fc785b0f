package activities

import (
	"context"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// around is who stores the orders of all sales. It is asked at most once: a list of
// many sales must not wait for each of them at a broker that hangs.
type around struct {
	*Service
	asked bool
	// backends are those that have spoken; not known if Redis did not tell.
	backends   []lua.Backend
	known      bool
	brokerAway bool
}

func (r *around) ask(ctx context.Context) {
	if r.asked {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, queueWithin)
	defer cancel()
	var err error
	r.backends, err = lua.Backends(ctx, r.Redis)
	r.asked, r.known = true, err == nil
	_, _, err = r.Queue.Depth(ctx)
	r.brokerAway = err != nil
}

// explain adds to v what keeps the orders of an open sale from being stored, which
// the sale itself does not show: edges sell on.
func (r *around) explain(ctx context.Context, v View) View {
	if v.State != store.Open || v.Snapshot == nil || v.Snapshot.State != lua.Open {
		return v
	}
	r.ask(ctx)
	running := 0
	for _, b := range r.backends {
		if !b.Silent(v.Snapshot.Now) {
			running++
		}
	}
	switch {
	case r.known && running == 0:
		v.Why += "; but no backend (seckilld serve) runs: orders are queued and not stored"
	case r.brokerAway:
		v.Why += fmt.Sprintf("; but the broker does not answer: orders wait in Redis, %d of them now", v.Snapshot.Outbox)
	}
	return v
}
