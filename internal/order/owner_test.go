package order

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnIDSaysWhomItIsFor(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	seen := map[string]bool{}
	for range 1000 {
		bare, err := NewID(now, rand.Reader)
		require.NoError(t, err)
		id := OwnID(bare, "1001", "alice")
		require.True(t, ValidID(id))
		require.False(t, seen[id])
		seen[id] = true
		made, ok := IDTime(id)
		require.True(t, ok)
		require.Equal(t, now, made)
		require.True(t, OwnedBy(id, "1001", "alice"))
	}
	id := OwnID("01kb7q3x5e8g9h0jkmnpqrstvw", "1001", "alice")
	for _, other := range [][3]string{
		{id, "1001", "bob"},
		{id, "1002", "alice"},
		{id, "1001a", "lice"},
		{id, "", "1001alice"},
		{id[:IDLength-1], "1001", "alice"},
		{"", "1001", "alice"},
		{id[:IDLength-1] + "!", "1001", "alice"},
		{"01kb7q3x5e8g9h0jkmnqqrst" + id[24:], "1001", "alice"},
	} {
		require.False(t, OwnedBy(other[0], other[1], other[2]), "%v", other)
	}
}
