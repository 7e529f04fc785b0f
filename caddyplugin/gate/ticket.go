package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// ticket is a click on its way to Redis and back. It is answered once, by the
// reply or by the watchdog, whichever is first.
type ticket struct {
	request  lua.Request
	activity string // the only one it is meant for; empty: any
	came     string // the activity it came for, once it has gone to Redis
	unknown  bool   // Redis may have run a call for it that failed
	weight   int64  // by which it leaves the crowd
	joined   time.Time
	taken    atomic.Bool   // who swaps it to true answers
	late     bool          // answered by the watchdog; the outcome is still open
	result   lua.Result    // unless late
	answered chan struct{} // capacity 1, so that the answerer never waits
}

var tickets = sync.Pool{New: func() any { return &ticket{answered: make(chan struct{}, 1)} }}

func newTicket(r lua.Request, now time.Time) *ticket {
	t := tickets.Get().(*ticket)
	t.request, t.activity, t.came, t.weight, t.joined = r, "", "", 0, now
	t.late, t.unknown, t.result = false, false, lua.Result{}
	t.taken.Store(false)
	return t
}

// free gives the ticket back. Only its click may call it, and only if it was
// answered by the reply: a late ticket is still in the group's hands.
func (t *ticket) free() {
	t.request = lua.Request{}
	tickets.Put(t)
}

// reply answers with Redis's result. It returns false if the click was told
// "queued" before.
func (t *ticket) reply(r lua.Result) bool {
	if !t.taken.CompareAndSwap(false, true) {
		return false
	}
	t.result = r
	t.answered <- struct{}{}
	return true
}

// giveUp tells the click "queued" while Redis is still thinking, after note has
// written that down. It does nothing if the click has its answer.
func (t *ticket) giveUp(note func()) {
	if !t.taken.CompareAndSwap(false, true) {
		return
	}
	note()
	t.late = true
	t.answered <- struct{}{}
}
