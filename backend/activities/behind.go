package activities

import (
	"context"
	"errors"
	"time"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/backend/tide"
)

// behind says that the database has forgotten something; empty if it has not, or if
// that cannot be known now.
func (s *Service) behind(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := tide.Check(ctx, tide.Deps{Store: s.Store, Redis: s.Redis, Log: s.Log}); errors.Is(err, store.ErrBehind) {
		return store.ErrBehind.Error()
	}
	return ""
}
