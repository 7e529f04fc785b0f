package order

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// messagesPage is a contract for consumers that are not ours.
func messagesPage(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "messages.md"))
	require.NoError(t, err)
	return string(text)
}

// TestDocumentedMessage: a message written as the page draws it is read, and is
// what an edge writes.
func TestDocumentedMessage(t *testing.T) {
	page := messagesPage(t)
	_, rest, ok := strings.Cut(page, "```\n")
	require.True(t, ok)
	drawn, _, ok := strings.Cut(rest, "\n```")
	require.True(t, ok)
	o := Order{
		ID: "01hzy3v9q2m8k4t7x5w6a0b1cd", ProductID: "1001", ActivityID: "spring", UserID: "alice@example.com",
		Quantity: 2, Claim: 1, ReservedAt: time.UnixMilli(1_794_000_000_000),
	}
	body := strings.NewReplacer(" ⇥ ", "\t", "product", o.ProductID, "activity", o.ActivityID, "order id", o.ID,
		"user", o.UserID, "quantity", "2", "claim", "1", "reserved at", "1794000000000").Replace(drawn)
	orders, bad, err := ParseMessage([]byte(body))
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Equal(t, []Order{o, o}, orders)
	require.Equal(t, body, string(AppendMessage(nil, orders)))
}

// TestDocumentedBounds: the page gives the numbers that the code holds.
func TestDocumentedBounds(t *testing.T) {
	page := messagesPage(t)
	for _, words := range []string{
		fmt.Sprintf("| `%s` | the version", version),
		fmt.Sprintf("is an order, 1 to %d", MaxPerMessage),
		fmt.Sprintf("| product, activity | 1 to %d of", MaxProductBytes),
		fmt.Sprintf("| order id | %d of", IDLength),
		fmt.Sprintf("1 to %d bytes without control characters", MaxUserBytes),
		fmt.Sprintf("| quantity | units, 1 to %d", MaxQuantity),
	} {
		require.Contains(t, page, words)
	}
	for _, r := range []Reason{ReasonOversold, ReasonDuplicate, ReasonUnknownActivity, ReasonInvalid, ReasonLost, ReasonDead} {
		require.Contains(t, page, "| `"+string(r)+"` |")
	}
}
