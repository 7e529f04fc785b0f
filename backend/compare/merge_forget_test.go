package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/lua"
)

// What a record forgets has a lesser id than what it remembers, as in release.lua:
// so an order that is forgotten is not bought again under the same id.
func TestTheLeastAreForgotten(t *testing.T) {
	var entries []lua.Entry
	for _, digit := range "5c1b9a8273d6" {
		id := "01kb7q3x5e8g9h0jkmnpqrstv" + string(digit)
		entries = append(entries, lua.Entry{Mark: lua.MarkCancelled, OrderID: id, Quantity: 1, Claim: 1, At: time.UnixMilli(1)})
	}
	var kept strings.Builder
	for _, e := range arranged(entries) {
		kept.WriteByte(e.OrderID[25])
	}
	require.Equal(t, "cb9a87d6", kept.String(), "in their order")
}
