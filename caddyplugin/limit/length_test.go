//go:build !race

package limit

const (
	// flood is how many keys come in the test of a flood.
	flood = 1_000_000
	// seconds is how long a simulated demand lasts.
	seconds = 10
)
