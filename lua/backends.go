package lua

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// backendsKey, hash: backend id → its heartbeat. It belongs to no product.
const backendsKey = "seckill:backends"

// Backend is one backend's word: the queue alone does not tell what a consumer
// has taken from it and not stored yet.
type Backend struct {
	ID string
	// InHand is the number of messages and orders it is working on.
	InHand int64
	// At is when it said so, by the server's clock.
	At time.Time
	// Causes say what keeps it from storing orders: part → cause, in words from fixed
	// lists. Empty if nothing does.
	Causes map[string]string
}

// silence is how long an edge or a backend, which both speak once a second or more
// often, may say nothing before it counts as dead.
const silence = 3 * time.Second

// silent also holds of a word from after now: the server's clock has gone back since.
func silent(at, now time.Time) bool { return now.Sub(at).Abs() > silence }

// Silent says whether the backend counts as dead at now, by the server's clock. The
// broker gives what it had taken to others then.
func (b Backend) Silent(now time.Time) bool { return silent(b.At, now) }

// PresentBackend is a backend's heartbeat: what it has in hand at this moment, and what
// keeps it from storing orders. inHand is asked after the server's clock: what it
// counts is as young as At.
func PresentBackend(ctx context.Context, c redis.Cmdable, id string, inHand func() int, causes map[string]string) error {
	now, err := c.Time(ctx).Result()
	if err == nil {
		word := strconv.Itoa(inHand()) + ":" + strconv.FormatInt(now.UnixMilli(), 10)
		if len(causes) > 0 {
			word += ":" + joinCauses(causes)
		}
		err = c.HSet(ctx, backendsKey, id, word).Err()
	}
	if err != nil {
		return fmt.Errorf("noting backend %s: %w", id, err)
	}
	return nil
}

// joinCauses is part=cause,part=cause in the order of the parts.
func joinCauses(causes map[string]string) string {
	words := make([]string, 0, len(causes))
	for _, part := range slices.Sorted(maps.Keys(causes)) {
		words = append(words, part+"="+causes[part])
	}
	return strings.Join(words, ",")
}

func splitCauses(words string) map[string]string {
	causes := map[string]string{}
	for word := range strings.SplitSeq(words, ",") {
		if part, cause, ok := strings.Cut(word, "="); ok {
			causes[part] = cause
		}
	}
	return causes
}

// AbsentBackends takes back the words of backends that have ended.
func AbsentBackends(ctx context.Context, c redis.Cmdable, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := c.HDel(ctx, backendsKey, ids...).Err(); err != nil {
		return fmt.Errorf("removing %d backends: %w", len(ids), err)
	}
	return nil
}

// Backends reads the words of all backends, those long gone among them; a word
// that cannot be read counts as long gone. A key that holds something else than
// words is removed: no backend could speak.
func Backends(ctx context.Context, c redis.Cmdable) ([]Backend, error) {
	words, err := wordsAt(ctx, c, backendsKey)
	if err != nil {
		return nil, fmt.Errorf("reading the backends: %w", err)
	}
	backends := make([]Backend, 0, len(words))
	for id, word := range words {
		b := Backend{ID: id, At: time.UnixMilli(0)}
		inHand, rest, _ := strings.Cut(word, ":")
		at, causes, _ := strings.Cut(rest, ":")
		n, ok1 := parseNumber(inHand, latest)
		ms, ok2 := parseNumber(at, latest)
		if ok1 && ok2 {
			b.InHand, b.At, b.Causes = n, time.UnixMilli(ms), splitCauses(causes)
		}
		backends = append(backends, b)
	}
	return backends, nil
}
