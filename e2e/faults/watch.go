package faults

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

const (
	// askEvery is the time between two questions to one program, commandEvery between
	// two runs of the command line.
	askEvery     = 300 * time.Millisecond
	commandEvery = 1500 * time.Millisecond
	// answerWithin bounds one question. Who does not answer has said nothing.
	answerWithin = 4 * time.Second
)

// watcher asks every program, again and again, how they say that things are.
type watcher struct {
	*Field
	markets []*market
	logs    []*logTail
	http    *http.Client
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu   sync.Mutex
	said []spoken
}

// spoken is a statement about a product, or about none.
type spoken struct {
	history.Statement
	product string
}

// watch begins to ask. finish must be called.
func (f *Field) watch(ctx context.Context, markets []*market) (*watcher, error) {
	w := &watcher{Field: f, markets: markets, http: &http.Client{Timeout: answerWithin}}
	w.ctx, w.stop = context.WithCancel(ctx)
	for i, e := range f.Edges {
		name := edgeName(i)
		if err := w.follow(name, e.Log); err != nil {
			return nil, err
		}
		w.every(askEvery, func() { w.ask(name, "", "/seckill/status", e.Admin+"/seckill/status", edgeStatus) })
		w.every(askEvery, func() { w.ask(name, "", "caddy_seckill_ready", e.Admin+"/metrics", edgeMetric) })
	}
	for i, b := range f.Backends {
		name := backendName(i)
		if err := w.follow(name, b.Log); err != nil {
			return nil, err
		}
		w.every(askEvery, func() { w.ask(name, "", "/readyz", b.URL+"/readyz", readyz) })
		w.every(askEvery, func() { w.ask(name, "", "/metrics", b.URL+"/metrics", backendMetric) })
		w.every(askEvery, func() {
			for _, m := range markets {
				w.ask(name, m.product, "/api/activities", b.URL+"/api/activities/"+m.product, activity)
			}
		})
	}
	w.every(commandEvery, w.show)
	return w, nil
}

// every does something again and again until finish.
func (w *watcher) every(gap time.Duration, do func()) {
	w.work.Go(func() {
		for {
			do()
			if pause(w.ctx, gap) != nil {
				return
			}
		}
	})
}

func (w *watcher) ask(by, product, place, url string, read reading) {
	asked := time.Now()
	claims, err := ask(w.ctx, w.http, url, read)
	if err == nil {
		w.note(by, product, place, asked, claims)
	}
}

func (w *watcher) note(by, product, place string, asked time.Time, claims []history.Statement) {
	answered := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range claims {
		s.By, s.At, s.End = by, asked, answered
		s.Place = cmp.Or(s.Place, place)
		w.said = append(w.said, spoken{s, product})
	}
}

// show asks the command line, past the proxies, as an operator would.
func (w *watcher) show() {
	for _, m := range w.markets {
		asked := time.Now()
		out, err := w.Seckilld(w.ctx, "activity", "show", m.product, "--json")
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || w.ctx.Err() != nil {
			continue
		}
		status := http.StatusOK
		if err != nil {
			status = http.StatusServiceUnavailable
		}
		w.note("command line", m.product, "activity show", asked, activity(status, []byte(out)))
	}
}

// finish ends the questions and returns what was said and logged.
func (w *watcher) finish() ([]spoken, []history.Line, error) {
	w.stop()
	w.work.Wait()
	w.http.CloseIdleConnections()
	var lines []history.Line
	var errs []error
	for _, l := range w.logs {
		more, err := l.read()
		lines, errs = append(lines, more...), append(errs, err)
	}
	slices.SortStableFunc(w.said, func(a, b spoken) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(lines, func(a, b history.Line) int { return a.At.Compare(b.At) })
	return w.said, lines, errors.Join(errs...)
}

// about chooses the statements about a product, and those about none.
func about(all []spoken, product string) (chosen []history.Statement) {
	for _, s := range all {
		if s.product == product || s.product == "" {
			chosen = append(chosen, s.Statement)
		}
	}
	return chosen
}

// rest leaves out the statements about no product.
func rest(all []spoken) []spoken {
	return slices.DeleteFunc(slices.Clone(all), func(s spoken) bool { return s.product == "" })
}
