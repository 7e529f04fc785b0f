package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/e2e/stack"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the faults need real servers; run without -short")
		os.Exit(0)
	}
	var err error
	if programs, err = os.MkdirTemp("", "seckill-programs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if shared != nil {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "ending the field:", err)
			code = max(code, 1)
		}
	}
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

var (
	programs string // the folder they are built in
	shared   *Field
	start    sync.Once
	failed   error
)

// field is the one field of all tests.
func field(t *testing.T) *Field {
	t.Helper()
	start.Do(func() {
		// Not the test's context: the field outlives it.
		ctx, cancel := context.WithTimeout(context.Background(), servicetest.Scaled(20*time.Minute))
		defer cancel()
		if failed = stack.Build(ctx, programs, true); failed == nil {
			shared, failed = Open(ctx, programs, Promise())
		}
	})
	require.NoError(t, failed)
	return shared
}

// quick is one round of the faults that hurt most and heal fast. The whole matrix
// is `make faults`.
var quick = []string{
	"edge killed", "backends killed", "redis killed, always", "redis and edge killed", "redis emptied",
	"line to redis deaf", "rabbitmq stopped", "queue deleted", "mariadb killed", "mariadb read-only",
	"redis loses the buyers, edge killed", "nonsense in the queue",
}

func TestASaleSurvives(t *testing.T) {
	for _, name := range quick {
		t.Run(name, func(t *testing.T) { survive(t, name) })
	}
}

// Deaths at each named line of our own code.
func TestASaleSurvivesDeathsAt(t *testing.T) {
	for _, k := range killKinds() {
		t.Run(k.Name, func(t *testing.T) { survive(t, k.Name) })
	}
}

func survive(t *testing.T, name string) {
	f := field(t)
	for _, k := range Kinds(Promise()) {
		if k.Name != name {
			continue
		}
		r := f.Play(t.Context(), k, rand.Uint64N(1_000_000))
		if r.Failed() {
			dir := filepath.Join(os.TempDir(), "seckill-faults-logs")
			Matrix{Logs: dir, Out: os.Stderr}.keep(f, &r)
		}
		require.NoError(t, r.Err, "seed %d", r.Seed)
		// What programs say of a fault is judged by the whole matrix: it needs faults
		// that last.
		broken := slices.DeleteFunc(r.Violations, func(v history.Violation) bool { return v.Kind == history.Untrue })
		require.Empty(t, broken, "seed %d", r.Seed)
		require.Positive(t, r.Orders)
		return
	}
	require.Fail(t, "no such kind", name)
}

// What a seed chooses is the same each time, and another seed chooses otherwise.
func TestASeedMakesAPlan(t *testing.T) {
	k := Kind{Name: "k", Last: long}
	first, again, other := makePlan(k, 1), makePlan(k, 1), makePlan(k, 2)
	require.Equal(t, first.r.Uint64(), again.r.Uint64())
	first.r, again.r, other.r = nil, nil, nil
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

func TestKindsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds(Promise()) {
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		require.Less(t, k.Last[0], k.Last[1], k.Name)
	}
	require.GreaterOrEqual(t, len(seen), 15)
}

func TestTheLastLineAndTheExitStatusFollowTheRounds(t *testing.T) {
	v := func(k history.Kind) Result {
		return Result{Kind: "a", Verdict: history.Verdict{Violations: []history.Violation{{Kind: k}}}}
	}
	for _, test := range []struct {
		name    string
		results []Result
		line    string
		clean   bool
	}{
		{"clean", []Result{{Kind: "a"}, {Kind: "a"}, {Kind: "b"}}, "kinds=2 rounds=3 lost=0 oversold=0 duplicated=0 stuck=0 late=0 untrue=0", true},
		{"lost", []Result{v(history.Lost)}, "kinds=1 rounds=1 lost=1 oversold=0 duplicated=0 stuck=0 late=0 untrue=0", false},
		{"oversold", []Result{v(history.Oversold)}, "kinds=1 rounds=1 lost=0 oversold=1 duplicated=0 stuck=0 late=0 untrue=0", false},
		{"duplicated", []Result{v(history.Duplicated)}, "kinds=1 rounds=1 lost=0 oversold=0 duplicated=1 stuck=0 late=0 untrue=0", false},
		{"stuck", []Result{v(history.Stuck)}, "kinds=1 rounds=1 lost=0 oversold=0 duplicated=0 stuck=1 late=0 untrue=0", false},
		{"late", []Result{v(history.Late)}, "kinds=1 rounds=1 lost=0 oversold=0 duplicated=0 stuck=0 late=1 untrue=0", false},
		{"untrue", []Result{v(history.Untrue)}, "kinds=1 rounds=1 lost=0 oversold=0 duplicated=0 stuck=0 late=0 untrue=1", false},
		{"not played", []Result{{Kind: "a", Err: os.ErrClosed}}, "kinds=1 rounds=1 lost=0 oversold=0 duplicated=0 stuck=1 late=0 untrue=0", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			total := Matrix{Out: t.Output(), Rounds: 1}.report(test.results)
			require.Equal(t, test.line, total.String())
			require.Equal(t, test.clean, total.Clean())
		})
	}
}
