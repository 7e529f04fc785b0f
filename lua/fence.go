package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed note.lua
	noteSource string
	noteScript = redis.NewScript(noteSource)
)

// fenceNoteFor is how long a word on a fence is believed.
const fenceNoteFor = 3 * time.Second

// NoteFence says who proves the stock of a product and where he stands, in
// words. The word is believed for 3 s; say it again meanwhile. False if somebody
// else has said so before: leave it to him.
//
// It keeps two from working against each other, no more: what is written is
// guarded by the epoch.
func NoteFence(ctx context.Context, c redis.Scripter, product, owner, words string) (bool, error) {
	keys := []string{KeysOf(product).Fence}
	noted, err := noteScript.Run(ctx, c, keys, owner, words, fenceNoteFor.Milliseconds()).Int64()
	return noted == 1, noteError(product, err)
}

// FenceNote is what NoteFence said last; empty if nobody proves the stock.
func FenceNote(ctx context.Context, c redis.Cmdable, product string) (string, error) {
	value, err := c.Get(ctx, KeysOf(product).Fence).Result()
	if err != nil && !errors.Is(err, redis.Nil) && !wrongType(err) {
		return "", fmt.Errorf("asking where the fence of product %s stands: %w", product, err)
	}
	_, words, _ := strings.Cut(value, " ")
	return words, nil
}

// DropFenceNote ends what NoteFence said, if owner has said it.
func DropFenceNote(ctx context.Context, c redis.Cmdable, product, owner string) error {
	key := KeysOf(product).Fence
	now, err := c.Get(ctx, key).Result()
	if err == nil && strings.HasPrefix(now, owner+" ") {
		err = c.Del(ctx, key).Err()
	}
	if errors.Is(err, redis.Nil) || wrongType(err) {
		return nil
	}
	return noteError(product, err)
}

func noteError(product string, err error) error {
	if err != nil {
		return fmt.Errorf("noting where the fence of product %s stands: %w", product, err)
	}
	return nil
}

// wrongType says that a key is something else than was asked for.
func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }
