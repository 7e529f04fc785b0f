package queue

import (
	"net"
	"sync"
	"time"
)

// maxGathered is how many bytes may wait for the socket before Write blocks.
const maxGathered = 1 << 20

// gatheringConn writes in the background what was written to it, in one system
// call as much as has gathered meanwhile. The library flushes every message;
// under load this makes many messages one packet, which spares both sides. And
// it bounds every write: the library does not, and holds its locks meanwhile.
type gatheringConn struct {
	net.Conn
	done chan struct{} // closed when the background is gone

	mu      sync.Mutex
	work    sync.Cond // there is something to write, or an error
	room    sync.Cond // there is less to write, or an error
	pending []byte
	err     error // why nothing more can be written
}

func newGatheringConn(conn net.Conn) *gatheringConn {
	c := &gatheringConn{Conn: conn, done: make(chan struct{})}
	c.work.L, c.room.L = &c.mu, &c.mu
	go c.run()
	return c
}

// Write returns before b is on its way. What fails then shows as a broken
// connection, like anything that is lost further on.
func (c *gatheringConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) >= maxGathered && c.err == nil {
		c.room.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.pending = append(c.pending, b...)
	c.work.Signal()
	return len(b), nil
}

// Close drops what has not been written.
func (c *gatheringConn) Close() error {
	c.fail(net.ErrClosed)
	return c.Conn.Close()
}

func (c *gatheringConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.work.Broadcast()
	c.room.Broadcast()
}

func (c *gatheringConn) run() {
	defer close(c.done)
	var batch []byte
	for {
		if batch = c.take(batch[:0]); len(batch) == 0 {
			return
		}
		err := c.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err == nil {
			_, err = c.Conn.Write(batch)
		}
		if err != nil {
			c.fail(err)
			c.Conn.Close() // wakes the library's reader
			return
		}
	}
}

// take returns what is pending and leaves empty in its place. It waits for it;
// nothing means the end.
func (c *gatheringConn) take(empty []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) == 0 && c.err == nil {
		c.work.Wait()
	}
	if c.err != nil {
		return nil
	}
	batch := c.pending
	c.pending = empty
	c.room.Broadcast()
	return batch
}
