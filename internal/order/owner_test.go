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

// FuzzIDs: whatever a client sends in an id's place is an id of this form or
// none, and only OwnID's are the buyer's.
func FuzzIDs(f *testing.F) {
	f.Add("01kb7q3x5e8g9h0jkmnpqrstvw", "1001", "alice")
	f.Add("01KB7Q3X5E8G9H0JKMNPQRSTVW", "{1001}", "a\tb")
	f.Add("81kb7q3x5e8g9h0jkmnpqrstvw", "1001:x", "")
	f.Add("../../../../../../../../..", "seckill:stock", "\xff")
	f.Fuzz(func(t *testing.T, id, product, user string) {
		made, ok := IDTime(id)
		require.Equal(t, ValidID(id), ok)
		if ValidProduct(product) {
			require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, product)
		}
		if ValidUser(user) {
			require.NotContains(t, user, "\t")
			require.NotContains(t, user, "\n")
		}
		if !ok {
			require.False(t, OwnedBy(id, product, user))
			return
		}
		require.Regexp(t, `^[0-7][0-9a-hjkmnp-tv-z]{25}$`, id)
		require.False(t, made.Before(time.UnixMilli(0)))
		own := OwnID(id, product, user)
		require.True(t, OwnedBy(own, product, user))
		require.Equal(t, id == own, OwnedBy(id, product, user))
	})
}
