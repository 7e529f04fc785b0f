package servicetest

import (
	"runtime"
	"sync"
	"time"
)

// The piece of work by which speed is measured: so many steps of spin on each of
// two cores at once, and how long a quiet machine takes for them. It spans several
// of the 100 ms periods in which Linux holds a container to its share of the cores.
const (
	speedSteps = 30_000_000
	speedCores = 2
	speedQuiet = 65 * time.Millisecond
)

// Slow says how many times slower than two quiet cores this process is, at least
// 1: because the cores are slow or few, because others use them, or because a
// container limits it. It is measured once, by the first call, which takes 65 ms
// on a quiet machine. Safe for concurrent use.
func Slow() float64 { return slow() }

var slow = sync.OnceValue(func() float64 {
	begun := time.Now()
	var cores sync.WaitGroup
	for range speedCores {
		cores.Go(func() { runtime.KeepAlive(spin(speedSteps)) })
	}
	cores.Wait()
	return max(1, float64(time.Since(begun))/float64(speedQuiet))
})

// spin computes in registers alone, which the race detector does not slow down.
func spin(steps int) uint64 {
	x := uint64(1)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// Scaled is d on a quiet machine and Slow times d on a slower one, from a second on
// in whole seconds. Tests take it for the deadlines of what they test.
func Scaled(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return max(d, time.Duration(float64(d)*Slow()).Round(unit))
}

// Patience is how long a test waits for what must happen: two minutes, Scaled. It
// only keeps a broken test from hanging for ever; never choose it so that a slow
// machine can reach it.
func Patience() time.Duration { return Scaled(2 * time.Minute) }
