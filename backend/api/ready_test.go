package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A crowd that asks whether a backend is ready costs the servers one look, and
// the end of the one who asked first is not the end of the look.
func TestReadyIsLookedUpOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked, asked := 0, make(chan error)
		h := readyz(Deps{Ready: func(ctx context.Context) map[string]error {
			looked++
			if err := errors.Join(<-asked, ctx.Err()); err != nil {
				return map[string]error{"redis": err}
			}
			return nil
		}}, newGuard("secret"))
		ask := func(ctx context.Context) int {
			out := httptest.NewRecorder()
			h.ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
			return out.Code
		}
		var crowd sync.WaitGroup
		first, goes := context.WithCancel(t.Context())
		crowd.Go(func() { ask(first) })
		synctest.Wait()
		for range 100 {
			crowd.Go(func() { require.Equal(t, http.StatusOK, ask(t.Context())) })
		}
		synctest.Wait()
		goes()
		asked <- nil
		crowd.Wait()
		require.Equal(t, 1, looked)

		crowd.Go(func() { asked <- errors.New("down") })
		require.Equal(t, http.StatusServiceUnavailable, ask(t.Context()), "nothing is remembered")
		crowd.Wait()
	})
}
