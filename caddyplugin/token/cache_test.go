package token

import (
	"strconv"
	"sync"
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

// TestTheFirstGivesWay: in a full set, and no other; a token that is there already
// takes its own place.
func TestTheFirstGivesWay(t *testing.T) {
	c := newCache()
	sum := func(i byte) (s [32]byte) { s[31] = i; return s } // all of one set
	for i := range byte(ways) {
		c.put(sum(i), "first", noon.Add(time.Duration(60-i)*time.Minute))
	}
	c.put(sum(1), "again", noon.Add(time.Hour))
	c.put(sum(ways), "newest", noon.Add(5*time.Minute))
	_, ok := c.get(sum(0), noon)
	require.False(t, ok, "it was put before the others")
	for i, want := range map[byte]string{1: "again", 2: "first", ways - 1: "first", ways: "newest"} {
		user, ok := c.get(sum(i), noon)
		require.True(t, ok)
		require.Equal(t, want, user)
	}
}

// TestLongLivedTokensAreInNobodysWay: those of a month fill the places, and a crowd
// with tokens of minutes is remembered all the same.
func TestLongLivedTokensAreInNobodysWay(t *testing.T) {
	c := newCache()
	for i := range 2 * places {
		c.put(sumOf("of the app "+strconv.Itoa(i)), "app", noon.Add(30*24*time.Hour))
	}
	const crowd = 20_000
	for i := range crowd {
		c.put(sumOf("a token "+strconv.Itoa(i)), "user", noon.Add(5*time.Minute))
	}
	forgotten := 0
	for i := range crowd {
		if _, ok := c.get(sumOf("a token "+strconv.Itoa(i)), noon); !ok {
			forgotten++
		}
	}
	require.LessOrEqual(t, forgotten, crowd/1000)
}

// TestPutAtOnce: whoever puts at once, a token is never found under another's name.
func TestPutAtOnce(t *testing.T) {
	c := newCache()
	sum := func(i int) (s [32]byte) { s[31] = byte(i); return s } // all of one set
	var crowd sync.WaitGroup
	for i := range 2 * ways {
		crowd.Go(func() {
			for range 1000 {
				c.put(sum(i), strconv.Itoa(i), noon.Add(time.Minute))
				if user, ok := c.get(sum(i), noon); ok && user != strconv.Itoa(i) {
					t.Errorf("%d is taken for %s", i, user)
				}
			}
		})
	}
	crowd.Wait()
}
