package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptions(t *testing.T) {
	good := options{streams: 20_000, perConnection: 100, perAddress: 10_000, maxMiB: 1024}
	require.NoError(t, good.check(1024))
	require.Equal(t, 200, good.connections())
	for words, change := range map[string]func(*options){
		"--streams":        func(o *options) { o.streams = 0 },
		"--per-connection": func(o *options) { o.perConnection = maxPerConnection + 1 },
		"--per-address":    func(o *options) { o.perAddress = 0 },
		"--hold":           func(o *options) { o.hold = -1 },
		"20200 open files": func(o *options) { o.perConnection = 1 },
	} {
		o := good
		change(&o)
		require.ErrorContains(t, o.check(20_000), words)
	}
}

// A few streams, each way: all hear of the end of their orders.
func TestStreams(t *testing.T) {
	ways := map[string]options{}
	if !testing.Short() {
		ways["HTTP/1.1"] = options{streams: 60, perConnection: 1, perAddress: 50}
		ways["HTTP/2"] = options{streams: 450, perConnection: 200, perAddress: 50}
	}
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			o.hold, o.maxMiB = 10*time.Millisecond, 1024
			var out strings.Builder
			require.NoError(t, run(t.Context(), o, &out))
			require.Contains(t, out.String(), "streams open on")
			require.Contains(t, out.String(), "all orders settled at once")
			o.maxMiB = 1
			require.ErrorContains(t, run(t.Context(), o, &out), "more than 1")
		})
	}
}
