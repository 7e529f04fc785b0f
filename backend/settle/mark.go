package settle

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// MarkOf is the mark in Redis of a row in this state. A created order of an
// activity without payment stage is settled. False for states that are no row's.
func MarkOf(state order.State, payWindow time.Duration) (lua.Mark, bool) {
	switch state {
	case order.Created:
		if payWindow == 0 {
			return lua.MarkSettled, true
		}
		return lua.MarkCreated, true
	case order.Paid:
		return lua.MarkPaid, true
	case order.Rejected:
		return lua.MarkRejected, true
	case order.Cancelled:
		return lua.MarkCancelled, true
	case order.Expired:
		return lua.MarkExpired, true
	case order.Queued:
	}
	return 0, false
}

// refusals are the answers that concern the keys of one product. Everything else
// is a Redis that will be well again by itself or by its operator: starting,
// failing over, full, asking for another password.
var refusals = []string{"WRONGTYPE", "CROSSSLOT", "script"}

// Refused says whether err is Redis's own answer to this call and will be the
// same next time. False for a Redis that cannot be reached or is not ready.
func Refused(err error) bool {
	if errors.Is(err, lua.ErrDamaged) || errors.Is(err, lua.ErrReply) {
		return true
	}
	var answer redis.Error
	if !errors.As(err, &answer) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	text := answer.Error()
	if strings.HasPrefix(text, "BUSY") {
		return false // somebody's script runs for too long
	}
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(text, r) })
}
