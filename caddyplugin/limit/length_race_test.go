//go:build race

package limit

// The race detector makes all ten times slower and finds nothing more in the length
// of a test without goroutines.
const (
	flood   = 200_000
	seconds = 2
)
