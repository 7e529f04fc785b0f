//go:build race

package limit

// flood is smaller than it is without the race detector, which makes it ten times
// slower and finds nothing more in a million.
const flood = 200_000
