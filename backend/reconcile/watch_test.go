package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
	"github.com/seckill-edge/seckill/lua"
)

// failing is a Redis of which the server with one product's keys is away.
type failing struct {
	redis.Hook
	product string
}

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(cmd.String(), "{"+f.product+"}") {
			cmd.SetErr(errors.New("away"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// A product whose server is away keeps nobody from looking after the others.
func TestOneProductIsAway(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		var products [2]string
		for i := range products {
			w.product += "x"
			w.sale(100, 1, 0)
			w.sold(10, 1)
			products[i] = w.product
		}
		for i, away := range products {
			client := w.client()
			client.AddHook(failing{product: away})
			w.product = products[1-i]
			require.NoError(t, w.redis.Del(t.Context(), w.keys().Stock).Err())
			r, _ := w.parts(client)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var watching sync.WaitGroup
			t.Cleanup(watching.Wait)
			told := make(chan error, 1)
			watching.Go(func() {
				r.NewWatch().Run(ctx, func(err error) {
					select {
					case told <- err:
					default:
					}
				})
			})
			w.proven(lua.Open)
			require.ErrorContains(t, <-told, away)
			stop()
			watching.Wait()
		}
	})
}

// A second inspection beside the first, and both in the middle of a sale that is
// spoilt: nothing is mended twice.
func TestTwoReconcileAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(1000, 2, 0)
		w.backend()
		lost := w.reserve(50, 2)
		w.confirm(lost)
		w.age(lost)
		untold := w.reserve(50, 1)
		w.confirm(untold)
		w.save(untold)
		set(w, w.keys().Stock, 840, w.keys().Frozen, 160)
		done := make(chan error, 3)
		for range cap(done) {
			r, _ := w.parts(w.client())
			go func() {
				_, err := r.Reconcile(context.WithoutCancel(t.Context()), w.activity, false)
				done <- err
			}()
		}
		for range cap(done) {
			require.NoError(t, <-done)
		}
		servicetest.Eventually(t, func() bool {
			s := w.snapshot()
			return s.Sold == 150 && s.Available == 850 && s.Proven() && s.State == lua.Open
		})
		w.agree()
	})
}

// Terms that somebody has changed in Redis by hand are SQL's again a moment later:
// under others, orders are granted that SQL refuses.
func TestTermsAreThoseOfSQL(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.sale(100, 2, time.Hour)
		right := w.redis.HGetAll(t.Context(), w.keys().Activity).Val()
		w.backend()
		for field, value := range map[string]string{"limit": "9", "start": "1", "end": "4000000000000", "pay": "1000"} {
			before := w.snapshot().Epoch
			require.NoError(t, w.redis.HSet(t.Context(), w.keys().Activity, field, value).Err())
			r, _ := w.parts(w.redis)
			dry, err := r.Reconcile(t.Context(), w.activity, true)
			require.NoError(t, err)
			require.Contains(t, dry.Findings[0].What, "other terms", field)
			servicetest.Eventually(t, func() bool { return w.snapshot().Epoch > before }, field)
			w.proven(lua.Open)
			require.Equal(t, right[field], w.redis.HGet(t.Context(), w.keys().Activity, field).Val())
		}
		w.agree()
	})
}
