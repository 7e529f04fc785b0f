package gate

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ten messages a second for two minutes are three lines, and one for the end.
func TestLeftBehindIsToldOfOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	clock := time.UnixMilli(1_794_000_000_000)
	l := leftBehind{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return clock }}
	l.over()
	require.Empty(t, out.String())
	for range 1210 {
		l.add(2, "1001", errors.New("away"))
		l.over() // another one of its connections
		clock = clock.Add(100 * time.Millisecond)
	}
	clock = clock.Add(leftCalm)
	l.over()
	l.over()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4, out.String())
	require.Contains(t, lines[0], "orders=2 error=away")
	require.Contains(t, lines[1], "orders=1202 for=1m0s")
	require.Contains(t, lines[2], "orders=2402 for=2m0s")
	require.Contains(t, lines[3], "left_behind=2420")
}
