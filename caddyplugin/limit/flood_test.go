//go:build !race

package limit

// flood is how many keys come in the test of a flood.
const flood = 1_000_000
