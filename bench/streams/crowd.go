package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// opening is how many streams are being opened at once.
const opening = 64

// maxPerConnection is how many streams Caddy allows on one HTTP/2 connection.
const maxPerConnection = 250

// crowd is the clients. Each reads its stream in a goroutine of its own.
type crowd struct {
	o       options
	address string
	// transports have a connection each, or, over HTTP/1.1, an address.
	transports []*http.Transport
	readers    sync.WaitGroup
	news       chan arrival
	// ctx ends all streams.
	ctx  context.Context
	stop context.CancelFunc
}

// arrival is when a client heard of the end of its order, or why it did not.
type arrival struct {
	at  time.Time
	err error
}

func newCrowd(o options, address string) *crowd {
	c := &crowd{o: o, address: address, news: make(chan arrival, o.streams)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	each := o.perConnection
	if each == 1 {
		each = o.perAddress
	}
	for i := range (o.streams + each - 1) / each {
		c.transports = append(c.transports, newTransport(i, o.perConnection > 1))
	}
	return c
}

func newTransport(i int, http2 bool) *http.Transport {
	dialer := net.Dialer{Timeout: 20 * time.Second}
	t := &http.Transport{DialContext: dialer.DialContext, ReadBufferSize: 1024, WriteBufferSize: 1024, Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(http2)
	t.Protocols.SetHTTP1(!http2)
	if !http2 {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i+1))}
	}
	return t
}

// open opens all streams and waits for the first event of each.
func (c *crowd) open(ctx context.Context, moves []lua.Move) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	next := make(chan int)
	errs := make([]error, opening)
	var wg sync.WaitGroup
	for worker := range opening {
		wg.Go(func() {
			for i := range next {
				if err := c.openOne(ctx, i, moves[i]); err != nil {
					errs[worker] = fmt.Errorf("opening stream %d of %d: %w", i+1, len(moves), err)
					cancel()
					return
				}
			}
		})
	}
feeding:
	for i := range moves {
		select {
		case next <- i:
		case <-ctx.Done():
			break feeding
		}
	}
	close(next)
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

func (c *crowd) openOne(ctx context.Context, i int, m lua.Move) error {
	body, err := c.get(ctx, i*len(c.transports)/c.o.streams, m)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(body, 1024)
	if err := await(body, in, `"status":"queued"`, 30*time.Second); err != nil {
		_ = body.Close()
		return err
	}
	c.readers.Go(func() {
		err := await(body, in, `"final":true`, 10*time.Minute)
		c.news <- arrival{time.Now(), err}
		_ = body.Close()
	})
	return nil
}

// get opens a stream, and waits for the edge to listen.
func (c *crowd) get(ctx context.Context, transport int, m lua.Move) (io.ReadCloser, error) {
	for {
		request, err := http.NewRequestWithContext(c.ctx, http.MethodGet,
			"http://"+c.address+"/seckill/"+product+"/orders/"+m.OrderID+"/events", nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("X-User-Id", m.UserID)
		response, err := c.transports[transport].RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusOK {
			return response.Body, nil
		}
		if err == nil {
			_ = response.Body.Close()
			return nil, fmt.Errorf("the edge answers %s", response.Status)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// await reads until a line has the given text.
func await(body io.Closer, in *bufio.Reader, text string, within time.Duration) error {
	late := time.AfterFunc(within, func() { _ = body.Close() })
	defer late.Stop()
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.Contains(line, []byte(text)) {
			return nil
		}
	}
}

// heard waits until every client has heard of its order's end.
func (c *crowd) heard(ctx context.Context, since time.Time) (p50, p99, last time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	all := make([]time.Duration, 0, c.o.streams)
	for len(all) < c.o.streams {
		select {
		case a := <-c.news:
			if a.err != nil {
				return 0, 0, 0, fmt.Errorf("a stream broke: %w", a.err)
			}
			all = append(all, a.at.Sub(since))
		case <-ctx.Done():
			return 0, 0, 0, fmt.Errorf("%d of %d clients have heard of it: %w", len(all), c.o.streams, ctx.Err())
		}
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], all[len(all)-1], nil
}

func (c *crowd) close() {
	c.stop()
	c.readers.Wait()
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}
