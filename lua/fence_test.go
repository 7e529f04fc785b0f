package lua

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestHold: from every damage comes an activity that is held, readable, and
// under an epoch above the one before.
func TestHold(t *testing.T) {
	spoils := map[string]func(context.Context, redis.Cmdable, Keys) error{
		"nothing":   func(context.Context, redis.Cmdable, Keys) error { return nil },
		"all keys":  func(ctx context.Context, c redis.Cmdable, _ Keys) error { return c.FlushDB(ctx).Err() },
		"its hash":  func(ctx context.Context, c redis.Cmdable, k Keys) error { return c.Del(ctx, k.Activity).Err() },
		"held once": func(ctx context.Context, c redis.Cmdable, k Keys) error { return field("state", "held")(ctx, c, k) },
	}
	for name, d := range damages {
		spoils[name] = d.spoil
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				ctx := t.Context()
				var id ids
				a := sale(10, 5)
				load(t, c, a)
				reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 2})
				require.NoError(t, spoil(ctx, c, KeysOf(product)))
				epoch, made, err := Hold(ctx, c, a, "")
				require.NoError(t, err)
				require.Equal(t, name == "all keys" || name == "its hash" || name == "activity a list", made)
				require.Greater(t, epoch, int64(1))
				again, made, err := Hold(ctx, c, a, "")
				require.NoError(t, err)
				require.False(t, made)
				require.Equal(t, epoch+1, again)
				s := audit(t, c)
				require.False(t, s.Proven())
				a.State, a.Epoch, a.RunID = OnHold, again, "unproven"
				require.Equal(t, a, s.Activity)

				_, _, err = SetState(ctx, c, product, "a-1", Open)
				require.ErrorIs(t, err, ErrUnproven)
				b, err := Reserve(ctx, c, product, again, []Request{{OrderID: id.next(), UserID: "v", Quantity: 1}})
				require.NoError(t, err)
				require.Equal(t, Unavailable, b.Results[0].Outcome)

				// Whatever was damaged, proving makes it good.
				was, err := ReadCounters(ctx, c, product)
				require.NoError(t, err)
				next, err := Prove(ctx, c, product, "a-1", again, Open, was, Units{Available: 10}, s.ServerRun)
				require.NoError(t, err)
				require.Equal(t, again+1, next)
				s = audit(t, c)
				require.True(t, s.Proven())
				require.Equal(t, [3]int64{10, 0, 0}, [3]int64{s.Available, s.Frozen, s.Sold})
				b, err = Reserve(ctx, c, product, next, []Request{{OrderID: id.next(), UserID: "v", Quantity: 1}})
				require.NoError(t, err)
				require.Equal(t, Reserved, b.Results[0].Outcome)
			})
		})
	}
}

// TestBuyersGone: where units are given away, somebody must have them.
func TestBuyersGone(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		var id ids
		load(t, c, sale(10, 5))
		order := id.next()
		reserve(t, c, Request{OrderID: order, UserID: "u", Quantity: 2})
		require.NoError(t, c.Del(t.Context(), KeysOf(product).Users).Err())
		before := dump(t, c)
		got := reserve(t, c, Request{OrderID: id.next(), UserID: "u", Quantity: 1}, Request{OrderID: order, UserID: "u", Quantity: 2})
		require.Equal(t, []Outcome{Unavailable, Unavailable}, outcomes(got))
		require.True(t, audit(t, c).Damaged)
		require.Equal(t, before, dump(t, c))
	})
}

func TestHoldRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(10, 1))
		other := sale(5, 1)
		other.ID = "a-2"
		before := dump(t, c)
		_, _, err := Hold(ctx, c, other, "")
		require.ErrorIs(t, err, ErrOtherActivity)
		_, _, err = Hold(ctx, c, other, "a-3")
		require.ErrorIs(t, err, ErrOtherActivity)
		_, _, err = Hold(ctx, c, Activity{ID: "a-1", ProductID: product}, "")
		require.ErrorContains(t, err, "total 0")
		require.Equal(t, before, dump(t, c))

		epoch, made, err := Hold(ctx, c, other, "a-1")
		require.NoError(t, err)
		require.True(t, made)
		require.Equal(t, int64(2), epoch)
		s := audit(t, c)
		require.Equal(t, "a-2", s.ID)
		require.Zero(t, s.Users)

		_, _, err = SetState(ctx, c, product, "a-2", Closed)
		require.NoError(t, err)
		_, _, err = Hold(ctx, c, other, "")
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestRewrite(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		a := sale(1000, 5)
		load(t, c, a)
		write := func(epoch int64, r ...Rewriting) ([]bool, error) { return Rewrite(ctx, c, product, "a-1", epoch, r) }
		_, err := write(1, Rewriting{UserID: "u", To: "x"})
		require.ErrorIs(t, err, ErrOvertaken, "it is open")
		epoch, _, err := Hold(ctx, c, a, "")
		require.NoError(t, err)
		_, err = write(1, Rewriting{UserID: "u", To: "x"})
		require.ErrorIs(t, err, ErrOvertaken, "an epoch that is over")
		_, err = Rewrite(ctx, c, product, "a-2", epoch, []Rewriting{{UserID: "u", To: "x"}})
		require.ErrorIs(t, err, ErrOvertaken)

		many := make([]Rewriting, 2*MaxPerCall+1)
		for i := range many {
			many[i] = Rewriting{UserID: string(rune('a' + i)), To: "1"}
		}
		done, err := write(epoch, many...)
		require.NoError(t, err)
		require.NotContains(t, done, false)
		require.Len(t, done, len(many))
		done, err = write(epoch, Rewriting{"a", "1", "2"}, Rewriting{"b", "", "2"}, Rewriting{"c", "1", ""}, Rewriting{"none", "", ""})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false, true, true}, done)
		raw, err := RawRecords(ctx, c, product, []string{"a", "b", "c", "none"})
		require.NoError(t, err)
		require.Equal(t, []string{"2", "1", "", ""}, raw)
	})
}

func TestProve(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		var id ids
		a := sale(10, 5)
		load(t, c, a)
		order := id.next()
		reserve(t, c, Request{OrderID: order, UserID: "u", Quantity: 2})
		server := audit(t, c).ServerRun
		prove := func(epoch int64, to ActivityState, was Counters, u Units) error {
			_, err := Prove(ctx, c, product, "a-1", epoch, to, was, u, server)
			return err
		}
		was := Counters{"8", "2", "0"}
		require.ErrorIs(t, prove(1, Open, was, Units{8, 2, 0}), ErrOvertaken, "it is open")
		epoch, _, err := Hold(ctx, c, a, "")
		require.NoError(t, err)
		before := dump(t, c)
		require.ErrorIs(t, prove(epoch-1, Open, was, Units{8, 2, 0}), ErrOvertaken)
		require.ErrorIs(t, prove(epoch, Open, Counters{"8", "", "0"}, Units{8, 2, 0}), ErrMoved)
		require.ErrorIs(t, prove(epoch, Open, was, Units{8, 2, 1}), ErrUnits)
		require.ErrorIs(t, prove(epoch, Open, was, Units{12, -2, 0}), ErrUnits)
		require.ErrorContains(t, prove(epoch, Closed, was, Units{8, 2, 0}), `want "open" or "held"`)
		_, err = Prove(ctx, c, product, "a-1", epoch, Open, was, Units{8, 2, 0}, "another server")
		require.ErrorIs(t, err, ErrOvertaken)
		require.Equal(t, before, dump(t, c))

		// A settlement while the records are read.
		change(t, c, MarkSettled, Move{UserID: "u", OrderID: order})
		require.ErrorIs(t, prove(epoch, Open, was, Units{8, 2, 0}), ErrMoved)
		require.NoError(t, prove(epoch, OnHold, Counters{"8", "0", "2"}, Units{8, 0, 2}))
		s := audit(t, c)
		require.True(t, s.Proven())
		require.Equal(t, OnHold, s.State)
		require.Equal(t, epoch+1, s.Epoch)
		require.ErrorIs(t, prove(epoch+1, Open, Counters{"8", "0", "2"}, Units{8, 0, 2}), ErrOvertaken, "proven already")
	})
}

func TestFenceNote(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		say := func(owner, words string) bool {
			mine, err := NoteFence(ctx, c, product, owner, words)
			require.NoError(t, err)
			return mine
		}
		heard := func() string {
			words, err := FenceNote(ctx, c, product)
			require.NoError(t, err)
			return words
		}
		require.Empty(t, heard())
		require.True(t, say("me", "waiting for 1 edge"))
		require.True(t, say("me", "comparing 40%"))
		require.False(t, say("you", "waiting"))
		require.Equal(t, "comparing 40%", heard())
		require.NoError(t, DropFenceNote(ctx, c, product, "you"))
		require.Equal(t, "comparing 40%", heard())
		ttl, err := c.PTTL(ctx, KeysOf(product).Fence).Result()
		require.NoError(t, err)
		require.Positive(t, ttl, "who dies leaves it for a moment only")
		require.NoError(t, DropFenceNote(ctx, c, product, "me"))
		require.Empty(t, heard())
		require.NoError(t, DropFenceNote(ctx, c, product, "me"))
		require.True(t, say("you", "waiting"))
	})
}

func TestBackends(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		before := time.Now().Add(-time.Minute)
		require.NoError(t, PresentBackend(ctx, c, "a", func() int { return 7 }, nil))
		require.NoError(t, c.HSet(ctx, backendsKey, "b", "nonsense").Err())
		got, err := Backends(ctx, c)
		require.NoError(t, err)
		require.Len(t, got, 2)
		for _, b := range got {
			if b.ID == "a" {
				require.Equal(t, int64(7), b.InHand)
				require.True(t, b.At.After(before))
				continue
			}
			require.Equal(t, Backend{ID: "b", At: time.UnixMilli(0)}, b)
		}
		require.NoError(t, AbsentBackends(ctx, c))
		require.NoError(t, AbsentBackends(ctx, c, "a", "b"))
		got, err = Backends(ctx, c)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestLookingAtKeys(t *testing.T) {
	onEach(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		load(t, c, sale(10, 5))
		var id ids
		order := id.next()
		reserve(t, c, Request{OrderID: order, UserID: "u", Quantity: 1})
		k := KeysOf(product)
		for _, key := range []string{k.Edges, k.Fence, "seckill:lease:{" + product + "}", "seckill:stock:{p-2}", "other:{" + product + "}"} {
			require.NoError(t, c.Set(ctx, key, "1", 0).Err())
		}
		strays, err := StrayKeys(ctx, c, product, 10)
		require.NoError(t, err)
		require.Empty(t, strays)
		for _, key := range []string{"seckill:stok:{" + product + "}", "seckill:stock:{" + product + "}:old"} {
			require.NoError(t, c.Set(ctx, key, "1", 0).Err())
		}
		strays, err = StrayKeys(ctx, c, product, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"seckill:stock:{" + product + "}:old", "seckill:stok:{" + product + "}"}, strays)
		strays, err = StrayKeys(ctx, c, product, 1)
		require.NoError(t, err)
		require.Len(t, strays, 1)

		types, err := KeyTypes(ctx, c, product)
		require.NoError(t, err)
		require.Equal(t, map[string]string{
			k.Activity: "hash", k.Stock: "string", k.Frozen: "string", k.Sold: "string",
			k.Users: "hash", k.Outbox: "hash",
		}, types)
		buyers, next, err := BuyersScan(ctx, c, product, 0, 100)
		require.NoError(t, err)
		require.Zero(t, next)
		require.Contains(t, buyers, "u")
		users, err := InOutbox(ctx, c, product, []string{order, id.next()})
		require.NoError(t, err)
		require.Equal(t, []string{"u", ""}, users)
	})
}

// Whatever somebody has left where those who prove a stock leave word, they come
// to speak.
func TestSpoiltWords(t *testing.T) {
	fence, edges := KeysOf(product).Fence, KeysOf(product).Edges
	for name, spoil := range map[string]func(ctx context.Context, c redis.Cmdable) error{
		"no end": func(ctx context.Context, c redis.Cmdable) error { return c.Set(ctx, fence, "a dead one", 0).Err() },
		"the clock went back": func(ctx context.Context, c redis.Cmdable) error {
			return c.Set(ctx, fence, "a dead one", time.Hour).Err()
		},
		"lists": func(ctx context.Context, c redis.Cmdable) error {
			for _, key := range []string{fence, edges, backendsKey} {
				if err := c.RPush(ctx, key, "x").Err(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c redis.UniversalClient) {
				ctx := t.Context()
				require.NoError(t, spoil(ctx, c))
				_, err := FenceNote(ctx, c, product)
				require.NoError(t, err)
				require.NoError(t, DropFenceNote(ctx, c, product, "me"))
				mine, err := NoteFence(ctx, c, product, "me", "at work")
				require.NoError(t, err)
				if !mine {
					left, err := c.PTTL(ctx, fence).Result()
					require.NoError(t, err)
					require.Positive(t, left, "it ends")
					require.LessOrEqual(t, left, fenceNoteFor, "and soon")
				}
				heard, err := Presence(ctx, c, product)
				require.NoError(t, err)
				require.Empty(t, heard)
				require.NoError(t, Present(ctx, c, product, Edge{ID: "e", At: time.UnixMilli(5)}))
				_, err = Backends(ctx, c)
				require.NoError(t, err)
				require.NoError(t, PresentBackend(ctx, c, "b", func() int { return 1 }, nil))
			})
		})
	}
}
