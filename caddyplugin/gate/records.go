package gate

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// readMax is the most records one command reads.
const readMax = 256

// Why a record could not be read, beside what Redis says.
var (
	errReadBusy = errors.New("too many wait to be told of their orders")
	errReadSlow = errors.New("redis has not answered in time")
)

// records reads buyers' records. All that wait for one product now are read with
// one HMGET: there is no timer, while a read is on its way the next ones gather.
// A product has a worker only while somebody waits.
type records struct {
	gate *Gate

	mu     sync.Mutex
	lines  map[string]*readLine
	closed bool
}

// readLine is who waits for records of one product.
type readLine struct {
	waiting []*lookup
	flight  []*lookup // what the worker has taken and not answered
}

// lookup is one buyer's record on its way. It is answered once, by Redis's reply
// or by the watchdog, whichever is first.
type lookup struct {
	user     string
	order    string // of which what is noted is asked too, empty for none
	joined   time.Time
	taken    atomic.Bool // who swaps it to true answers
	read     recordAnswer
	answered chan struct{} // capacity 1, so that the answerer never waits
}

var lookupPool = sync.Pool{New: func() any { return &lookup{answered: make(chan struct{}, 1)} }}

func newRecords(g *Gate) *records {
	return &records{gate: g, lines: make(map[string]*readLine)}
}

// read returns a buyer's record as Redis has it, empty if there is none, and what is
// noted of an order if the record does not have it. The order may be empty. It waits
// ReserveTimeout at most.
func (r *records) read(product, user, orderID string) (string, lua.Refusal, error) {
	l := lookupPool.Get().(*lookup)
	l.user, l.order, l.joined = user, orderID, r.gate.deps.Now()
	l.read = recordAnswer{}
	l.taken.Store(false)
	if !r.join(product, l) {
		lookupPool.Put(l)
		return "", lua.Refusal{}, errReadBusy
	}
	<-l.answered
	read := l.read
	if !errors.Is(read.err, errReadSlow) { // else the worker still holds it
		lookupPool.Put(l)
	}
	return read.text, read.note, read.err
}

// join adds a lookup; false if too many wait or the gate is closed.
func (r *records) join(product string, l *lookup) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[product]
	if r.closed || line == nil && len(r.lines) >= maxSales || line != nil && len(line.waiting) >= r.gate.cfg.Waiting {
		return false
	}
	if line == nil {
		line = &readLine{}
		r.lines[product] = line
		r.gate.start(func() { r.work(product, line) })
	}
	line.waiting = append(line.waiting, l)
	return true
}

// work reads until nobody waits.
func (r *records) work(product string, line *readLine) {
	var users, orders []string
	for {
		// Two yields let the requests that are runnable now join this read.
		runtime.Gosched()
		runtime.Gosched()
		batch := r.take(product, line)
		if batch == nil {
			return
		}
		users, orders = users[:0], orders[:0]
		for _, l := range batch {
			users, orders = append(users, l.user), append(orders, l.order)
		}
		read, err := r.gate.readBatch(product, users, orders)
		r.land(line)
		for i, l := range batch {
			if err != nil {
				l.reply(recordAnswer{err: err})
			} else {
				l.reply(read[i])
			}
		}
	}
}

// take hands out the next batch; nil ends the worker, and the line with it.
func (r *records) take(product string, line *readLine) []*lookup {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(line.waiting), readMax)
	if n == 0 {
		delete(r.lines, product)
		return nil
	}
	batch := make([]*lookup, n)
	copy(batch, line.waiting)
	rest := copy(line.waiting, line.waiting[n:])
	clear(line.waiting[rest:])
	line.waiting = line.waiting[:rest]
	line.flight = batch
	return batch
}

// land takes a batch out of the watchdog's sight: from here on its lookups may
// be used again.
func (r *records) land(line *readLine) {
	r.mu.Lock()
	line.flight = nil
	r.mu.Unlock()
}

func (l *lookup) reply(read recordAnswer) {
	if !l.taken.CompareAndSwap(false, true) {
		return
	}
	l.read = read
	l.answered <- struct{}{}
}

// expire gives up on behalf of everybody who has waited since before the given
// time.
func (r *records) expire(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		for _, list := range [...][]*lookup{line.flight, line.waiting} {
			for _, l := range list {
				if l.joined.After(before) {
					break // lists are in order of arrival
				}
				l.reply(recordAnswer{err: errReadSlow})
			}
		}
	}
}

// close lets no further lookup in; those inside are answered.
func (r *records) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}
