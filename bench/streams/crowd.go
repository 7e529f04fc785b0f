package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/lua"
)

// opening is how many streams are being opened at once.
const opening = 64

// crowd is the clients. Each reads its stream in a goroutine of its own, and is
// as small as can be: the memory that counts is the edge's.
type crowd struct {
	o       options
	address string
	readers sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	news  chan arrival
}

// arrival is when a client heard of the end of its order, or why it did not.
type arrival struct {
	at  time.Time
	err error
}

func newCrowd(o options, address string) *crowd {
	return &crowd{o: o, address: address, news: make(chan arrival, o.streams)}
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
	from := i / c.o.perAddress
	dialer := net.Dialer{
		Timeout:   20 * time.Second,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(from>>8), byte(from+1))},
	}
	conn, err := c.dial(ctx, dialer)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	request := "GET /seckill/" + product + "/orders/" + m.OrderID + "/events HTTP/1.1\r\nHost: " + c.address +
		"\r\nX-User-Id: " + m.UserID + "\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 1024)
	if err := await(conn, in, `"status":"queued"`, 30*time.Second); err != nil {
		return err
	}
	c.readers.Go(func() {
		err := await(conn, in, `"final":true`, 10*time.Minute)
		c.news <- arrival{time.Now(), err}
	})
	return nil
}

// dial waits for the edge to listen.
func (c *crowd) dial(ctx context.Context, dialer net.Dialer) (net.Conn, error) {
	for {
		conn, err := dialer.DialContext(ctx, "tcp", c.address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// await reads until a line has the given text.
func await(conn net.Conn, in *bufio.Reader, text string, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && bytes.HasPrefix(line, []byte("HTTP/")) && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("the edge answers %q", line)
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
	c.mu.Lock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.readers.Wait()
}
