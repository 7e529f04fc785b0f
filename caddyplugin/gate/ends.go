package gate

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

const (
	// lostMargin is how far the clocks of edges and Redis may be apart: the end of an
	// order may be noted until this much before it is told to be lost.
	lostMargin = time.Second
	// keepEnds is how long a note stays: longer than anybody may ask for it.
	keepEnds = lostFor + 2*fastClock
)

// errTooManyEnds: as many ends wait to be noted as may.
var errTooManyEnds = errors.New("too many wait to be noted")

// lateEnds notes in Redis how late clicks ended of which no record tells, so that
// every edge says the same of them for as long as they can be asked for. Until it is
// noted an end is told to nobody. A Redis that is away is asked again until the time
// of a note is over; then its order is lost, on every edge alike.
type lateEnds struct {
	gate *Gate

	mu    sync.Mutex
	lines map[string]*endLine // by product; one has a worker while it is there
	size  int                 // of all lines, at most lateMax
	idle  chan struct{}       // closed when the last line has ended; nil without lines
}

type endLine struct {
	waiting []pendingEnd
	err     error // why the last try failed
}

// pendingEnd waits to be noted until over, by this edge's clock.
type pendingEnd struct {
	note lua.RefusalNote
	over time.Time
}

func newLateEnds(g *Gate) *lateEnds {
	return &lateEnds{gate: g, lines: make(map[string]*endLine)}
}

// add takes in a refusal. One too many is not noted. It may be called only by what
// Close waits for.
func (r *lateEnds) add(product string, p pendingEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[product]
	if r.size >= lateMax || line == nil && len(r.lines) >= maxSales {
		r.gate.unnoted(product, 1, errTooManyEnds)
		return
	}
	if r.size++; line != nil {
		line.waiting = append(line.waiting, p)
		return
	}
	if len(r.lines) == 0 {
		r.idle = make(chan struct{})
	}
	line = &endLine{waiting: []pendingEnd{p}}
	r.lines[product] = line
	r.gate.start(func() { r.work(product, line) })
}

// work notes until nothing waits, or the gate stops.
func (r *lateEnds) work(product string, line *endLine) {
	for wait := carrySoon; ; {
		notes := r.next(product, line, false)
		if notes == nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.gate.ctx, r.gate.cfg.callTimeout)
		stand, err := lua.NoteRefusals(ctx, r.gate.deps.Redis, product, keepEnds, notes)
		cancel()
		if err == nil {
			r.gate.noted(product, stand)
			r.cut(line, len(notes))
			wait = carrySoon
			continue
		}
		line.err = err // which only the worker touches
		if !r.gate.sleep(wait) {
			r.next(product, line, true)
			return
		}
		wait = min(2*wait, carryLate)
	}
}

// next returns what to note now, and drops what is too late. It ends the line if
// nothing waits, and, with all, if something does. Only the worker calls it.
func (r *lateEnds) next(product string, line *endLine, all bool) []lua.RefusalNote {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.gate.deps.Now()
	keep := line.waiting[:0]
	for _, p := range line.waiting {
		if !all && !now.After(p.over) {
			keep = append(keep, p)
		}
	}
	if dropped := len(line.waiting) - len(keep); dropped > 0 {
		clear(line.waiting[len(keep):])
		line.waiting = keep
		r.size -= dropped
		r.gate.unnoted(product, dropped, line.err)
	}
	if len(keep) == 0 {
		delete(r.lines, product)
		if len(r.lines) == 0 {
			close(r.idle)
			r.idle = nil
		}
		return nil
	}
	notes := make([]lua.RefusalNote, min(len(keep), lua.MaxPerCall))
	for i := range notes {
		notes[i] = keep[i].note
	}
	return notes
}

// cut takes the first n out, which are noted.
func (r *lateEnds) cut(line *endLine, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := copy(line.waiting, line.waiting[n:])
	clear(line.waiting[rest:])
	line.waiting = line.waiting[:rest]
	r.size -= n
}

// drain waits until all is noted or too late, or ctx ends. Nothing is added any more.
func (r *lateEnds) drain(ctx context.Context) {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// learnLate takes in what Redis said to a click after its buyer was told "queued", and
// has it noted if it is an end that no record tells.
func (g *Gate) learnLate(s *sale, id string, r lua.Result) {
	g.stats.lateOutcome(r.Outcome)
	o, ends := g.late.learn(id, r)
	if !ends {
		return
	}
	last := g.lastWord(id).Add(-lostMargin)
	g.ends.add(s.product, pendingEnd{over: last, note: lua.RefusalNote{
		Refusal: o.refusal(id), UserID: o.user, Until: s.view.Load().serverNow(last),
	}})
}

// noted takes in what stands in Redis of late orders.
func (g *Gate) noted(product string, stand []lua.Refusal) {
	ids := make([]string, 0, len(stand))
	for _, r := range stand {
		if r.OrderID == "" { // its record tells of it, or it is lost
			continue
		}
		g.late.end(r)
		ids = append(ids, r.OrderID)
	}
	if len(ids) < len(stand) {
		g.deps.Log.Debug("late refusals do not stand in Redis", "product", product, "orders", len(stand)-len(ids))
	}
	g.streams.moved(product, strings.Join(ids, " "))
}

func (g *Gate) unnoted(product string, n int, err error) {
	g.deps.Log.Warn("how late orders ended could not be noted in time: their buyers are told that they are lost",
		"product", product, "orders", n, "error", err)
}
