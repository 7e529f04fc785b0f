package lua

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// fenceNoteFor is how long a word on a fence is believed.
const fenceNoteFor = 3 * time.Second

// NoteFence says who proves the stock of a product and where he stands, in
// words. The word is believed for 3 s; say it again meanwhile. False if somebody
// else has said so before: leave it to him.
//
// It keeps two from working against each other, no more: what is written is
// guarded by the epoch.
func NoteFence(ctx context.Context, c redis.Cmdable, product, owner, words string) (bool, error) {
	key, value := KeysOf(product).Fence, owner+" "+words
	mine, err := c.SetNX(ctx, key, value, fenceNoteFor).Result()
	if err != nil || mine {
		return mine, noteError(product, err)
	}
	now, err := c.Get(ctx, key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, noteError(product, err)
	}
	if err == nil && !strings.HasPrefix(now, owner+" ") {
		return false, nil
	}
	return true, noteError(product, c.Set(ctx, key, value, fenceNoteFor).Err())
}

// FenceNote is what NoteFence said last; empty if nobody proves the stock.
func FenceNote(ctx context.Context, c redis.Cmdable, product string) (string, error) {
	value, err := c.Get(ctx, KeysOf(product).Fence).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
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
	if errors.Is(err, redis.Nil) {
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
