package consume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seckill-edge/seckill/internal/queue"
)

// Bounds of what is sent on of a foreign message: whatever it is, its dead letter
// can be written. Ours are far below all of them.
const (
	// idBytes bounds an id that a number is added to.
	idBytes = 200
	// headerBytes bounds all foreign headers together.
	headerBytes = 8 << 10
	// bodyBytes bounds the body; the largest message of ours has 50 kB.
	bodyBytes = 1 << 20
)

// portable is m as it can be sent on under any circumstances. note says in words
// what had to be left out of its body, if anything.
func portable(m queue.Message) (out queue.Message, note string) {
	out = queue.Message{ID: m.ID, Body: m.Body, Headers: map[string]string{}}
	if len(out.ID) > queue.MaxNameBytes {
		out.ID = shortID(out.ID)
	}
	if len(m.Body) > bodyBytes {
		out.Body = m.Body[:bodyBytes]
		note = fmt.Sprintf(" (cut: %d of %d bytes)", bodyBytes, len(m.Body))
	}
	room := headerBytes
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		value := m.Headers[name]
		size := len(name) + len(value)
		if name == "" || queue.Routing(name) || len(name) > queue.MaxNameBytes || size > room {
			continue
		}
		room -= size
		out.Headers[name] = value
	}
	return out, note
}

// shortID is id, or what stands for it where it is too long: the same for the same.
func shortID(id string) string {
	if len(id) <= idBytes {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return "long-" + hex.EncodeToString(digest[:16])
}

// nameOf is the id that those of m's entries are made from, also if it has none.
func nameOf(m queue.Message) string {
	if m.ID != "" {
		return shortID(m.ID)
	}
	digest := sha256.Sum256(m.Body)
	return "body-" + hex.EncodeToString(digest[:6])
}

// write sends m to a target, at the worst without the foreign headers: a broker may
// have smaller frames than any that we know.
func (c *Consumer) write(ctx context.Context, to queue.Target, m queue.Message) error {
	err := c.publish(ctx, to, m)
	if !errors.Is(err, queue.ErrUnfit) {
		return err
	}
	bare := queue.Message{ID: shortID(m.ID), Body: m.Body, Headers: map[string]string{}}
	for _, name := range []string{queue.HeaderAttempt, queue.HeaderReason} {
		if value, there := m.Headers[name]; there {
			bare.Headers[name] = cut(value, reasonBytes)
		}
	}
	return c.publish(ctx, to, bare)
}

// cut is the beginning of text, valid UTF-8.
func cut(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}
