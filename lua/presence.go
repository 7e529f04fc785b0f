package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Edge is one edge's word on a product: the backend that proves a stock waits
// until no edge carries anything that SQL cannot know yet.
type Edge struct {
	// ID is made by the edge when it starts.
	ID string
	// Epoch is the activity's as the edge saw it last.
	Epoch int64
	// Carried is the orders the edge has reserved or is reserving, and the broker
	// has not confirmed.
	Carried int64
	// At is when it said so, by the server's clock as the edge estimates it.
	At time.Time
}

// Silent says whether the edge counts as dead at now, by the server's clock.
func (e Edge) Silent(now time.Time) bool { return silent(e.At, now) }

// Present notes an edge's word. It creates no activity and needs none.
func Present(ctx context.Context, c redis.Cmdable, product string, e Edge) error {
	word := strconv.FormatInt(e.Epoch, 10) + ":" + strconv.FormatInt(e.Carried, 10) + ":" + strconv.FormatInt(e.At.UnixMilli(), 10)
	if err := c.HSet(ctx, KeysOf(product).Edges, e.ID, word).Err(); err != nil {
		return fmt.Errorf("noting edge %s at product %s: %w", e.ID, product, err)
	}
	return nil
}

// Absent takes back an edge's word: it has ended cleanly and carries nothing.
func Absent(ctx context.Context, c redis.Cmdable, product, edge string) error {
	if err := c.HDel(ctx, KeysOf(product).Edges, edge).Err(); err != nil {
		return fmt.Errorf("removing edge %s at product %s: %w", edge, product, err)
	}
	return nil
}

// Presence reads the edges of a product, those long gone among them; a word that
// cannot be read counts as an edge that never spoke. A key that holds something
// else than words is removed: no edge could speak.
func Presence(ctx context.Context, c redis.Cmdable, product string) ([]Edge, error) {
	words, err := wordsAt(ctx, c, KeysOf(product).Edges)
	if err != nil {
		return nil, fmt.Errorf("reading the edges of product %s: %w", product, err)
	}
	edges := make([]Edge, 0, len(words))
	for id, word := range words {
		e := Edge{ID: id, At: time.UnixMilli(0)}
		if f := strings.Split(word, ":"); len(f) == 3 {
			epoch, ok1 := parseNumber(f[0], latest)
			carried, ok2 := parseNumber(f[1], latest)
			ms, ok3 := parseNumber(f[2], latest)
			if ok1 && ok2 && ok3 {
				e.Epoch, e.Carried, e.At = epoch, carried, time.UnixMilli(ms)
			}
		}
		edges = append(edges, e)
	}
	return edges, nil
}

// wordsAt reads the words of a hash, and removes what is none.
func wordsAt(ctx context.Context, c redis.Cmdable, key string) (map[string]string, error) {
	words, err := c.HGetAll(ctx, key).Result()
	if wrongType(err) {
		return nil, c.Unlink(ctx, key).Err()
	}
	return words, err
}
