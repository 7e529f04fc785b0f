package lua

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// BuyersScan reads a part of the buyers' records as they are stored, user →
// record, about count of them. Begin with cursor 0 and go on with next until it
// is 0. Buyers that are there all the time are seen, some perhaps twice.
func BuyersScan(ctx context.Context, c redis.Cmdable, product string, cursor uint64, count int64) (records map[string]string, next uint64, err error) {
	pairs, next, err := c.HScan(ctx, KeysOf(product).Users, cursor, "", count).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scanning the buyers of product %s: %w", product, err)
	}
	records = make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		records[pairs[i]] = pairs[i+1]
	}
	return records, next, nil
}

// RawRecords reads the records of many buyers at one instant as they are stored,
// damaged or not; empty for one who has none.
func RawRecords(ctx context.Context, c redis.Cmdable, product string, users []string) ([]string, error) {
	return hashValues(ctx, c, KeysOf(product).Users, users)
}

// InOutbox says of each order which buyer the outbox has for it; empty if the
// order is not in it.
func InOutbox(ctx context.Context, c redis.Cmdable, product string, orderIDs []string) ([]string, error) {
	users, err := hashValues(ctx, c, KeysOf(product).Outbox, orderIDs)
	for i, text := range users {
		users[i], _, _ = strings.Cut(text, "\t")
	}
	return users, err
}

func hashValues(ctx context.Context, c redis.Cmdable, key string, fields []string) ([]string, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	values, err := c.HMGet(ctx, key, fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("reading %d fields of %s: %w", len(fields), key, err)
	}
	out := make([]string, len(fields))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out, nil
}

// KeyTypes says of each of a product's keys what type Redis has it as; "none" if
// it is missing. Empty hashes are missing.
func KeyTypes(ctx context.Context, c redis.Cmdable, product string) (map[string]string, error) {
	types := map[string]string{}
	for _, key := range KeysOf(product).list() {
		kind, err := c.Type(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("asking for the type of %s: %w", key, err)
		}
		types[key] = kind
	}
	return types, nil
}

// StrayKeys finds keys that carry the product's tag and this prefix and are none
// of ours, sorted, at most limit of them. It goes through all keys of all
// servers, which costs Redis about a second each million.
func StrayKeys(ctx context.Context, c redis.UniversalClient, product string, limit int) ([]string, error) {
	ours := KeysOf(product).all()
	var found []string
	err := scan(ctx, c, "seckill:*:{"+product+"}*", func(key string) (enough bool) {
		// A lease may have the name of a product.
		if slices.Contains(ours, key) || strings.HasPrefix(key, "seckill:lease:") || slices.Contains(found, key) {
			return false
		}
		found = append(found, key)
		return len(found) == limit
	})
	if err != nil {
		return nil, fmt.Errorf("looking for strange keys of product %s: %w", product, err)
	}
	slices.Sort(found)
	return found, nil
}
