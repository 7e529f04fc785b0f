// Package load is a closed-loop HTTP/1.1 load generator that costs little next to
// the server it drives: one request in flight on each connection, written from a
// prepared buffer, answers read only as far as status and length. Its own price
// falls on every server under test alike.
package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Run is one run of load.
type Run struct {
	// Addr is host:port, on this machine.
	Addr string
	// Request is the whole request; every '#' in it becomes a digit of a number
	// that differs in each request, so that each has a buyer of its own.
	Request []byte
	// Fill, if set, writes what the request of a number is into its copy of
	// Request instead; it must not change the length. It is called by many at once.
	Fill func(request []byte, number uint64)
	// Connections is how many requests are in flight.
	Connections int
	// Duration is how long to go on.
	Duration time.Duration
	// Count is how many requests to send at most; 0 for no bound.
	Count uint64
	// First is the number of the first request.
	First uint64
}

// Result is what a run has seen.
type Result struct {
	// Status counts answers by HTTP status.
	Status map[int]uint64
	// Took is the time from the first request to the last answer.
	Took time.Duration
	// P50 and P99 are latencies of a sample of the answers.
	P50, P99 time.Duration
	// Next is a number that no request has used yet.
	Next uint64
}

// Total is the number of answers.
func (r Result) Total() uint64 {
	var n uint64
	for _, c := range r.Status {
		n += c
	}
	return n
}

// PerSecond is the number of answers with this status a second; 0 means all.
func (r Result) PerSecond(status int) float64 {
	n := r.Total()
	if status != 0 {
		n = r.Status[status]
	}
	return float64(n) / r.Took.Seconds()
}

// Do runs the load. Any connection error ends it: a server under test must not
// lose one.
func Do(ctx context.Context, run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, run.Duration+30*time.Second)
	defer cancel()
	var next atomic.Uint64
	next.Store(run.First)
	start := time.Now()
	stop := start.Add(run.Duration)

	workers := make([]worker, run.Connections)
	var wg sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.run, w.next, w.stop = run, &next, stop
		wg.Go(func() { w.err = w.loop(ctx) })
	}
	wg.Wait()

	result := Result{Status: make(map[int]uint64), Took: time.Since(start), Next: next.Load()}
	var all []time.Duration
	var errs []error
	for i := range workers {
		for status, n := range workers[i].status {
			if n > 0 {
				result.Status[status] += n
			}
		}
		all = append(all, workers[i].sample...)
		errs = append(errs, workers[i].err)
	}
	slices.Sort(all)
	if len(all) > 0 {
		result.P50, result.P99 = all[len(all)/2], all[len(all)*99/100]
	}
	return result, errors.Join(errs...)
}

// sampleEvery thins the latency sample, so that taking it costs nothing.
const sampleEvery = 8

type worker struct {
	run    Run
	next   *atomic.Uint64
	stop   time.Time
	status [600]uint64
	sample []time.Duration
	err    error
}

func (w *worker) loop(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", w.run.Addr)
	if err != nil {
		return fmt.Errorf("dialling %s: %w", w.run.Addr, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	request := slices.Clone(w.run.Request)
	var digits []int
	for i, c := range request {
		if c == '#' {
			digits = append(digits, i)
		}
	}
	in := bufio.NewReaderSize(conn, 8192)
	for n := 0; ; n++ {
		start := time.Now()
		if !start.Before(w.stop) {
			return nil
		}
		number := w.next.Add(1) - 1
		if w.run.Count > 0 && number-w.run.First >= w.run.Count {
			return nil
		}
		if w.run.Fill != nil {
			w.run.Fill(request, number)
		} else {
			for _, at := range slices.Backward(digits) {
				request[at] = '0' + byte(number%10)
				number /= 10
			}
		}
		if _, err := conn.Write(request); err != nil {
			return fmt.Errorf("writing to %s: %w", w.run.Addr, err)
		}
		status, err := readAnswer(in)
		if err != nil {
			return fmt.Errorf("reading an answer from %s: %w", w.run.Addr, err)
		}
		w.status[status]++
		if n%sampleEvery == 0 {
			w.sample = append(w.sample, time.Since(start))
		}
	}
}

var contentLength = []byte("content-length:")

// readAnswer reads one answer with a Content-Length.
func readAnswer(in *bufio.Reader) (status int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil || status < 100 || status > 599 {
		return 0, fmt.Errorf("status line %q", line)
	}
	length := -1
	for {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, fmt.Errorf("header %q", line)
			}
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("an answer with status %d and no Content-Length", status)
	}
	_, err = in.Discard(length)
	return status, err
}
