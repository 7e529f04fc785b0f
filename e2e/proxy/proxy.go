// Package proxy is a TCP proxy that spoils a connection on purpose: it cuts,
// delays, or eats what goes through, each direction by itself. Fault tests put
// one between each program and each server it calls.
package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// Way is how one direction is treated. The zero Way passes everything on.
type Way struct {
	// Delay is how late each piece is passed on; pieces keep their order.
	Delay time.Duration
	// Deaf swallows everything: the sender believes that it was sent.
	Deaf bool
}

// Mode is how a proxy treats all its connections.
type Mode struct {
	// Cut closes all connections and accepts none: a dial is refused.
	Cut bool
	// Up is from the client to the server, Down back.
	Up, Down Way
}

// Proxy is one listening proxy. All methods are safe for concurrent use.
type Proxy struct {
	addr string

	mu      sync.Mutex
	target  string
	mode    Mode
	changed chan struct{} // closed by each Set
	listen  net.Listener
	open    map[net.Conn]struct{}
	closed  bool

	work sync.WaitGroup
}

// New listens on a free loopback port and passes connections on to target.
// Close must be called.
func New(target string) (*Proxy, error) {
	// A port that nobody is given by chance while the proxy is cut.
	addr, err := servicetest.FreeAddr()
	if err != nil {
		return nil, fmt.Errorf("a proxy for %s: %w", target, err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("a proxy for %s: %w", target, err)
	}
	p := &Proxy{
		addr: listener.Addr().String(), target: target,
		listen: listener, open: map[net.Conn]struct{}{}, changed: make(chan struct{}),
	}
	p.work.Go(func() { p.accept(listener) })
	return p, nil
}

// Addr is where clients connect: host:port.
func (p *Proxy) Addr() string { return p.addr }

// Retarget sends connections that are made from now on to another server, and
// closes those there are.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.hangUpLocked()
}

// Set changes the treatment, of connections that stand too.
func (p *Proxy) Set(m Mode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	lossy := p.mode.Up.Deaf && !m.Up.Deaf || p.mode.Down.Deaf && !m.Down.Deaf
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
	if m.Cut {
		p.hangUpLocked()
		if p.listen != nil {
			_ = p.listen.Close()
			p.listen = nil
		}
		return nil
	}
	if lossy {
		// A stream that has lost bytes must not go on: a peer would read garbage.
		p.hangUpLocked()
	}
	if p.listen != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("opening the proxy on %s again: %w", p.addr, err)
	}
	p.listen = listener
	p.work.Go(func() { p.accept(listener) })
	return nil
}

// Close ends the proxy and its connections, and waits for them. It may be called
// twice.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.changed)
		p.hangUpLocked()
		if p.listen != nil {
			_ = p.listen.Close()
		}
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *Proxy) hangUpLocked() {
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed: nothing else ends a loopback listener
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, func(m Mode) Way { return m.Up }) })
	both.Go(func() { p.carry(client, server, func(m Mode) Way { return m.Down }) })
	both.Wait()
}

// keep notes a connection to be hung up; false if it is unwanted by now.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.mode.Cut {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// carry copies one direction. When it ends it closes both ends, so that the
// other direction ends too.
func (p *Proxy) carry(to, from net.Conn, way func(Mode) Way) {
	defer to.Close()
	defer from.Close()
	pieces := make(chan piece, 256)
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() { defer close(pieces); read(ctx, from, pieces) })
	defer reading.Wait()
	defer from.Close()
	defer cancel()
	for piece := range pieces {
		if !p.pass(piece, way) {
			continue
		}
		if _, err := to.Write(piece.data); err != nil {
			return
		}
	}
}

type piece struct {
	data []byte
	at   time.Time
}

func read(ctx context.Context, from io.Reader, pieces chan<- piece) {
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			select {
			case pieces <- piece{buffer[:n], time.Now()}:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until a piece is due, by the treatment at that time, and says
// whether it goes on.
func (p *Proxy) pass(piece piece, way func(Mode) Way) bool {
	for {
		p.mu.Lock()
		w, changed, closed := way(p.mode), p.changed, p.closed
		p.mu.Unlock()
		if closed || w.Deaf {
			return false
		}
		wait := time.Until(piece.at.Add(w.Delay))
		if wait <= 0 {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		}
		timer.Stop()
	}
}
