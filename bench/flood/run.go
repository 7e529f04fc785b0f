package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/bench/load"
)

const (
	connections = 64 // of the strangers
	hands       = 16 // of the abuser, and of the honest
	// honestSpan is the time over which the honest come.
	honestSpan = 25 * time.Second
	// patience is how often one comes again after "not now" (503), which an edge
	// says when Redis has not answered it in time. A limit's 429 is never due to him.
	patience = 5
)

func run(ctx context.Context, o options) (s seen, err error) {
	dir, err := os.MkdirTemp("", "seckill-flood-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	fmt.Println("Building the edge, starting Redis and RabbitMQ …")
	e, err := startEdge(ctx, dir, int64(o.honest)+ipBurst*10)
	if err != nil {
		return s, err
	}
	defer e.stop()
	fmt.Printf("%d strangers, an abuser with %d calls a second, %d honest buyers …\n", o.strangers, o.abuse, o.honest)

	ctx, end := context.WithTimeout(ctx, o.within+time.Minute)
	defer end()
	abusing, stopAbuse := context.WithCancel(ctx)
	start := time.Now()
	var crowd sync.WaitGroup
	crowd.Go(func() { s.abuser = abuse(abusing, e.site, o.abuse) })
	var honest honestBuyers
	var honestDone sync.WaitGroup
	honestDone.Go(func() { honest.buy(ctx, e.site, o.honest) })
	flood, err := load.Do(ctx, load.Run{
		Addr: e.site, Connections: connections, Duration: o.within, Count: o.strangers,
		Request: []byte("POST /seckill/" + product + " HTTP/1.1\r\nHost: " + e.site + "\r\nX-Forwarded-For: 2001:0db8:0000:0000::1\r\nContent-Length: 0\r\n\r\n"),
		Fill:    network,
	})
	honestDone.Wait()
	s.took = time.Since(start)
	stopAbuse()
	crowd.Wait()
	if err != nil {
		return s, fmt.Errorf("the strangers' calls: %w", err)
	}
	s.strangers = counts{letIn: flood.Status[http.StatusUnauthorized], limited: flood.Status[http.StatusTooManyRequests]}
	s.strangers.other = flood.Total() - s.strangers.total()
	s.served, s.failure = honest.served, honest.failure
	s.again = honest.again
	s.p50, s.p99 = honest.latencies()
	if s.peak, err = e.peak(); err != nil {
		return s, err
	}
	s.keys, err = e.figure(ctx, `caddy_seckill_limit_keys{level="ip"}`)
	return s, err
}

// network writes the stranger's /64 into his request: the third and fourth group
// of the address.
func network(request []byte, number uint64) {
	const digits, before = "0123456789abcdef", "X-Forwarded-For: 2001:0db8:"
	at := slices.Index(request, 'X') + len(before)
	for i := range 8 {
		request[at+i+i/4] = digits[number>>(28-4*i)&15]
	}
}

// abuse calls so many times a second until ctx ends, from ever new addresses of
// one /64 and in ever new names.
func abuse(ctx context.Context, site string, perSecond int) (c counts) {
	client := newClient()
	defer client.CloseIdleConnections()
	calls := make(chan int)
	var mu sync.Mutex
	var working sync.WaitGroup
	for range hands {
		working.Go(func() {
			for n := range calls {
				status, _ := call(context.WithoutCancel(ctx), client, http.MethodPost, site, "/seckill/"+product,
					fmt.Sprintf("2001:db9::%x", n+1), fmt.Sprintf("abuser-%d", n), nil)
				mu.Lock()
				switch status {
				case http.StatusAccepted, http.StatusGone, http.StatusServiceUnavailable:
					c.letIn++
				case http.StatusTooManyRequests:
					c.limited++
				default:
					c.other++
				}
				mu.Unlock()
			}
		})
	}
	start := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; {
		for due := int(time.Since(start).Seconds() * float64(perSecond)); n < due; n++ {
			calls <- n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	close(calls)
	working.Wait()
	return c
}

// honestBuyers are those for whom all this is done.
type honestBuyers struct {
	mu      sync.Mutex
	served  int
	again   int
	failure string
	took    []time.Duration
}

func (h *honestBuyers) buy(ctx context.Context, site string, n int) {
	client := newClient()
	defer client.CloseIdleConnections()
	buyers := make(chan int)
	var working sync.WaitGroup
	for range hands {
		working.Go(func() {
			for i := range buyers {
				h.one(ctx, client, site, i)
			}
		})
	}
	start := time.Now()
	for i := range n {
		select {
		case <-time.After(time.Until(start.Add(honestSpan / time.Duration(n) * time.Duration(i)))):
		case <-ctx.Done():
		}
		buyers <- i
	}
	close(buyers)
	working.Wait()
}

// one looks at the activity, buys, and asks for the order twice.
func (h *honestBuyers) one(ctx context.Context, client *http.Client, site string, i int) {
	address, user := fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255), fmt.Sprintf("honest-%d", i)
	var queued struct {
		StatusURL string `json:"status_url"`
	}
	page := "/seckill/" + product
	for _, step := range []struct {
		method string
		want   int
		into   any
	}{{http.MethodGet, 200, nil}, {http.MethodPost, 202, &queued}, {http.MethodGet, 200, nil}, {http.MethodGet, 200, nil}} {
		begin := time.Now()
		status, err := call(ctx, client, step.method, site, page, address, user, step.into)
		for try := 0; err == nil && status == http.StatusServiceUnavailable && try < patience; try++ {
			h.mu.Lock()
			h.again++
			h.mu.Unlock()
			select { // as Retry-After says
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			status, err = call(ctx, client, step.method, site, page, address, user, step.into)
		}
		h.mu.Lock()
		h.took = append(h.took, time.Since(begin))
		if (err != nil || status != step.want) && h.failure == "" {
			h.failure = fmt.Sprintf("%s %s of %s: %d, not %d: %v", step.method, page, user, status, step.want, err)
		}
		h.mu.Unlock()
		if err != nil || status != step.want {
			return
		}
		if step.into != nil {
			page = queued.StatusURL
		}
	}
	h.mu.Lock()
	h.served++
	h.mu.Unlock()
}

func (h *honestBuyers) latencies() (p50, p99 time.Duration) {
	slices.Sort(h.took)
	if n := len(h.took); n > 0 {
		p50, p99 = h.took[n/2], h.took[n*99/100]
	}
	return p50, p99
}

// call asks once; the answer's document goes into into.
func call(ctx context.Context, client *http.Client, method, site, path, address, user string, into any) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+site+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Forwarded-For", address)
	r.Header.Set("X-User-Id", user)
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && into != nil && answer.StatusCode < 300 {
		err = json.Unmarshal(text, into)
	}
	return answer.StatusCode, err
}
