package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seckill-edge/seckill/backend/readiness"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// noneRunning is the cause of the part readiness.Backend when no backend runs.
const noneRunning = "none_running"

// around is who stores the orders of all sales, and whether they can. It is asked at most
// once: a list of many sales must not wait for each of them at a broker that hangs.
type around struct {
	*Service
	asked bool
	// redis is why Redis takes no write, nil if it does.
	redis error
	// backends are those whose heartbeat Redis has; not known if it did not tell.
	backends []lua.Backend
	known    bool
	broker   error
}

func (r *around) ask(ctx context.Context) {
	if r.asked {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, queueWithin)
	defer cancel()
	r.redis = lua.Writable(ctx, r.Redis)
	var err error
	r.backends, err = lua.Backends(ctx, r.Redis)
	r.asked, r.known = true, err == nil
	_, _, r.broker = r.Queue.Depth(ctx)
}

// explain adds to v what keeps an open sale from selling, or its orders from being
// stored, which the sale itself does not show.
func (r *around) explain(ctx context.Context, v View) View {
	if v.State != store.Open || v.Snapshot == nil || v.Snapshot.State != lua.Open {
		return v
	}
	r.ask(ctx)
	running, troubled := r.running(*v.Snapshot)
	because := func(words string, causes map[string]string) View {
		v.Why += "; but " + words
		v.Causes = causes
		return v
	}
	switch {
	case r.redis != nil:
		// No backend can say that it runs then.
		return because(r.redis.Error(), map[string]string{readiness.Redis: readiness.CauseOf(readiness.Redis, r.redis)})
	case r.known && running == 0:
		return because("no backend (seckilld serve) runs: orders are queued and not stored", map[string]string{readiness.Backend: noneRunning})
	case r.broker != nil:
		return because(fmt.Sprintf("the broker does not answer: orders wait in Redis, %d of them now", v.Snapshot.Outbox),
			map[string]string{readiness.Queue: readiness.CauseOf(readiness.Queue, r.broker)})
	case r.known && troubled != nil:
		return because("no backend can store its orders: "+inWords(troubled), troubled)
	}
	return v
}

// running counts the backends that run; troubled are the causes of one of them if
// each has some.
func (r *around) running(s lua.Snapshot) (running int, troubled map[string]string) {
	well := false
	for _, b := range r.backends {
		if b.Silent(s.Now) {
			continue
		}
		running++
		well = well || len(b.Causes) == 0
		if troubled == nil {
			troubled = b.Causes
		}
	}
	if well {
		return running, nil
	}
	return running, troubled
}

// inWords is "database read_only, queue blocked".
func inWords(causes map[string]string) string {
	words := make([]string, 0, len(causes))
	for _, part := range slices.Sorted(maps.Keys(causes)) {
		words = append(words, part+" "+causes[part])
	}
	return strings.Join(words, ", ") + " (its /readyz and log say more)"
}
