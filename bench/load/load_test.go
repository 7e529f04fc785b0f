package load

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryRequestIsCountedAndHasANumberOfItsOwn(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("X-User-Id")]++
		odd := len(seen)%2 == 1
		mu.Unlock()
		if odd {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = io.WriteString(w, "answer")
	}))
	defer srv.Close()
	result, err := Do(t.Context(), Run{
		Addr:        strings.TrimPrefix(srv.URL, "http://"),
		Request:     []byte("POST / HTTP/1.1\r\nHost: x\r\nX-User-Id: u######\r\nContent-Length: 0\r\n\r\n"),
		Connections: 4, Duration: 100 * time.Millisecond, First: 7,
	})
	require.NoError(t, err)
	require.EqualValues(t, len(seen), result.Total())
	require.Equal(t, result.Next, 7+result.Total())
	require.Contains(t, seen, "u000007")
	for user, n := range seen {
		require.Equal(t, 1, n, user)
	}
	require.Positive(t, result.Status[http.StatusOK])
	require.Positive(t, result.Status[http.StatusGone])
	require.Positive(t, result.PerSecond(http.StatusOK))
	require.LessOrEqual(t, result.P50, result.P99)
}

func TestALostConnectionIsAnError(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	_, err := Do(t.Context(), Run{
		Addr: strings.TrimPrefix(srv.URL, "http://"), Request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		Connections: 1, Duration: time.Second,
	})
	require.ErrorContains(t, err, "reading an answer")
}
