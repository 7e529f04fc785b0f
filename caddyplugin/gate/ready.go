package gate

import (
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/lua"
)

// The parts that a gate needs to sell.
const (
	PartRedis = "redis"
	PartQueue = "queue"
)

// NotReady is the error of Ready: what a gate needs to sell, and why it is missing.
type NotReady struct { //nolint:errname // gate.NotReady says what it is
	Part string
	Err  error
}

func (n *NotReady) Error() string { return n.Part + ": " + n.Err.Error() }
func (n *NotReady) Unwrap() error { return n.Err }

// Cause names the reason in a word from a fixed list: that of a lua.Fault, or a
// queue.Cause.
func (n *NotReady) Cause() string {
	if n.Part == PartRedis {
		return lua.FaultOf(n.Err).String()
	}
	return string(queue.CauseOf(n.Err))
}

// Causes are all that a part can have.
func Causes(part string) []string {
	var all []string
	if part == PartRedis {
		for fault := lua.FaultNotSent; fault <= lua.FaultPermanent; fault++ {
			all = append(all, fault.String())
		}
		return all
	}
	for _, c := range queue.Causes {
		all = append(all, string(c))
	}
	return all
}
