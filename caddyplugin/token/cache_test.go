package token

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestACrowdIsRemembered: tokens of a crowd do not drive each other out long
// before there are as many as places.
func TestACrowdIsRemembered(t *testing.T) {
	for _, crowd := range []struct {
		tokens int
		atMost float64 // the part that may be forgotten
	}{
		{20_000, 0.0001},
		{places / 4, 0.01},
		{places / 2, 0.1},
	} {
		c := newCache()
		for i := range crowd.tokens {
			c.put(sumOf("a token "+strconv.Itoa(i)), strconv.Itoa(i), noon.Add(time.Minute))
		}
		forgotten := 0
		for i := range crowd.tokens {
			user, ok := c.get(sumOf("a token "+strconv.Itoa(i)), noon)
			if !ok {
				forgotten++
				continue
			}
			require.Equal(t, strconv.Itoa(i), user)
		}
		require.LessOrEqual(t, float64(forgotten)/float64(crowd.tokens), crowd.atMost, "%d tokens", crowd.tokens)
	}
}

// TestTheSoonestToExpireGivesWay: in a full set, and no other; a token that is
// there already takes its own place.
func TestTheSoonestToExpireGivesWay(t *testing.T) {
	c := newCache()
	sum := func(i byte) (s [32]byte) { s[31] = i; return s } // all of one set
	for i := range byte(ways) {
		c.put(sum(i), "first", noon.Add(time.Duration(10+i)*time.Minute))
	}
	c.put(sum(ways-1), "again", noon.Add(time.Hour))
	c.put(sum(ways), "newest", noon.Add(5*time.Minute))
	_, ok := c.get(sum(0), noon)
	require.False(t, ok, "it expired before the others")
	for i, want := range map[byte]string{1: "first", 2: "first", ways - 1: "again", ways: "newest"} {
		user, ok := c.get(sum(i), noon)
		require.True(t, ok)
		require.Equal(t, want, user)
	}
}
