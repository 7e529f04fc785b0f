package queue

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestDocumentedTopology: docs/messages.md is a contract for consumers that are not
// ours, so what it calls by name is what we declare, and all of it.
func TestDocumentedTopology(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "messages.md"))
	require.NoError(t, err)
	page := string(text)

	require.Equal(t, []string{exchange}, firstCells(page, "exchange"))
	var names []string
	for _, q := range queues {
		names = append(names, q.name)
		require.Regexp(t, "(?m)^\\| queue `"+regexp.QuoteMeta(q.name)+"` \\| quorum, key `"+string(q.target)+"` \\|", page)
		require.Equal(t, "quorum", q.args[amqp.QueueTypeArg])
		require.Equal(t, "reject-publish", q.args["x-overflow"])
		// All but the last stop pass dead letters on.
		require.Equal(t, q.target != Dead, q.args["x-dead-letter-strategy"] == "at-least-once", q.name)
	}
	require.ElementsMatch(t, names, firstCells(page, "queue"))
	require.Contains(t, page, "`x-overflow: reject-publish`")
	for _, header := range []string{HeaderAttempt, HeaderReason} {
		require.Contains(t, page, "| `"+header+"` |")
	}
}

// firstCells are the names in the first cells of rows that describe a kind of thing.
func firstCells(page, kind string) []string {
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| "+kind+" `([^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}
