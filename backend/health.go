package backend

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/readiness"
	"github.com/seckill-edge/seckill/internal/outage"
)

const healthEvery = time.Second

// health looks, again and again, at what keeps orders from being stored, for those who
// are not asked: the log, and the heartbeat, by which other processes know.
type health struct {
	look    func(context.Context) map[string]error
	within  time.Duration // bounds one look
	passes  *duty.Log
	outages map[string]*outage.Log // by part
	causes  atomic.Pointer[map[string]string]
}

func newHealth(look func(context.Context) map[string]error, within time.Duration, passes *duty.Log, log *slog.Logger, now func() time.Time) *health {
	h := &health{look: look, within: within, passes: passes, outages: map[string]*outage.Log{}}
	for _, part := range readiness.Parts {
		h.outages[part] = outage.NewLog(log, "not ready: "+part, now)
	}
	return h
}

// run looks until ctx ends. The first look comes after a moment: nothing is connected
// before.
func (h *health) run(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = h.passes.Pass(ctx, duty.Health, func() error { h.pass(ctx); return nil })
		}
	}
}

func (h *health) pass(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	missing := h.look(looking)
	if ctx.Err() != nil {
		return // the end is no outage
	}
	causes := readiness.CausesOf(missing)
	h.causes.Store(&causes)
	for part, log := range h.outages {
		log.Note(missing[part], "cause", causes[part])
	}
}

// now is part → cause as the last look had it; nil before the first.
func (h *health) now() map[string]string {
	if causes := h.causes.Load(); causes != nil {
		return *causes
	}
	return nil
}
