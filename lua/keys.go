package lua

// Keys are the Redis keys of one product. The braces are literal: they are the
// hash tag that keeps all keys of a product in one slot of a Redis Cluster.
// Keys of no product are made beside what they hold: limitKey, tideKey,
// backendsKey, and those of package lease.
type Keys struct {
	// Activity, hash: id, title, start and end (ms), total, limit, pay (pay
	// window, ms), state, epoch, run (the server's run id it was opened under), changes
	// (of the total so far, see Resize).
	Activity string
	// Stock, Frozen and Sold, strings: units available, reserved, settled.
	Stock, Frozen, Sold string
	// Users, hash: user id → record of his orders (see ParseRecord).
	Users string
	// Outbox, hash: order id the broker has not confirmed yet → user id, and behind
	// tabs quantity and claim unless both are 1: what brings the order back should
	// its record be lost.
	Outbox string
	// Edges, hash: edge id → what that edge carries of this product (see
	// Presence). Of the scripts only expire touches it.
	Edges string
	// Fence, string: who proves the stock and where he stands (see NoteFence). No
	// script touches it.
	Fence string
	// Limit, string: when the bucket of the limit that all edges share will be full,
	// in microseconds (see TakeTokens). It goes by itself.
	Limit string
	// Refused, sorted set: order id, quantity and why an order was refused that was told
	// "queued" and that Users does not have (see NoteRefusals). All scores are 0, so it
	// is sorted by id, and so by age. It goes by itself.
	Refused string
}

// limitKey is the same as Keys.Limit, for all products together. It belongs to no
// product.
const limitKey = "seckill:limit"

// KeysOf makes the keys of a product. The id must be valid (order.ValidProduct).
func KeysOf(product string) Keys {
	tag := "{" + product + "}"
	return Keys{
		Activity: "seckill:activity:" + tag,
		Stock:    "seckill:stock:" + tag,
		Frozen:   "seckill:frozen:" + tag,
		Sold:     "seckill:sold:" + tag,
		Users:    "seckill:users:" + tag,
		Outbox:   "seckill:outbox:" + tag,
		Edges:    "seckill:edges:" + tag,
		Fence:    "seckill:fence:" + tag,
		Limit:    "seckill:limit:" + tag,
		Refused:  "seckill:refused:" + tag,
	}
}

// list is what every script is given, in the order the scripts expect.
func (k Keys) list() []string {
	return []string{k.Activity, k.Stock, k.Frozen, k.Sold, k.Users, k.Outbox}
}

// all are all keys that a product may have.
func (k Keys) all() []string { return append(k.list(), k.Edges, k.Fence, k.Limit, k.Refused) }
