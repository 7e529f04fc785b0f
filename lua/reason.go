package lua

import "github.com/seckill-edge/seckill/internal/order"

// reasonsByLetter are the reasons as a record writes them.
var reasonsByLetter = map[byte]order.Reason{
	'o': order.ReasonOversold,
	'd': order.ReasonDuplicate,
	'u': order.ReasonUnknownActivity,
	'i': order.ReasonInvalid,
	'l': order.ReasonLost,
	'x': order.ReasonDead,
}

// letterOf is a reason's letter; false if records have none for it.
func letterOf(r order.Reason) (byte, bool) {
	if r == "" {
		return 0, false
	}
	for letter, reason := range reasonsByLetter {
		if reason == r {
			return letter, true
		}
	}
	return 0, false
}
