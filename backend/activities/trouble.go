package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// silence makes a backend count as dead: each speaks four times a second.
	silence = 3 * time.Second
	// askAround bounds asking who stores the orders.
	askAround = time.Second
)

// trouble says what keeps the orders of an open sale from being stored, which the
// sale itself does not show: edges sell on. Empty if nothing does.
func (s *Service) trouble(ctx context.Context, v View) string {
	if v.State != store.Open || v.Snapshot == nil || v.Snapshot.State != lua.Open {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askAround)
	defer cancel()
	if backends, err := lua.Backends(ctx, s.Redis); err == nil {
		running := 0
		for _, b := range backends {
			if v.Snapshot.Now.Sub(b.At) <= silence {
				running++
			}
		}
		if running == 0 {
			return "but no backend (seckilld serve) runs: orders are queued and not stored"
		}
	}
	if _, _, err := s.Queue.Depth(ctx); err != nil {
		return fmt.Sprintf("but the broker does not answer: orders wait in Redis, %d of them now", v.Snapshot.Outbox)
	}
	return ""
}
