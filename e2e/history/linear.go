package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// Linearizable says whether the answers to clicks are those of one stock that
// serves one click after the other, each at some moment between its start and
// its end: no edge shows a past that another edge's buyers have seen end. Stock
// must not come back during the history, and fates must be final.
//
// A click that was told "queued" without Redis's word (answered after
// reserveTimeout) is taken for one that may happen until the end, and its fate
// for what happened. One without an answer may have happened or not. One that was
// told to come again has done nothing.
//
// undecided is true when the search took longer than within; ok is then true.
func Linearizable(h *History, reserveTimeout, within time.Duration) (ok, undecided bool) {
	end := h.End.At
	last := map[string]Told{}
	for _, t := range h.Told {
		if t.Status == 200 {
			last[t.OrderID] = t
		}
	}
	var operations []porcupine.Operation
	for i, c := range h.Clicks {
		answer, until := answerOf(&c), c.End
		switch {
		case answer == comeAgain:
			continue
		case answer == unknown:
			until = end
		case answer == taken && c.End.Sub(c.Start) >= reserveTimeout:
			until = end
			if t := last[c.OrderID]; t.State == order.Rejected {
				answer = answerTo(t.Reason)
			}
		}
		operations = append(operations, porcupine.Operation{
			ClientId: i, Input: want{c.Buyer, c.Quantity}, Output: answer,
			Call: c.Start.UnixNano(), Return: until.UnixNano(),
		})
	}
	result := porcupine.CheckOperationsTimeout(model(h.Total, h.Limit), operations, within)
	return result != porcupine.Illegal, result == porcupine.Unknown
}

// reply is what a click was told, as the model knows it.
type reply int

const (
	unknown reply = iota
	comeAgain
	taken
	alreadyBought
	soldOut
	fewerLeft
	impossible // an answer that this sale never gives
)

func answerOf(c *Click) reply {
	switch {
	case c.Status == 0:
		return unknown
	case c.accepted():
		return taken
	}
	return answerWith(c.Code)
}

func answerWith(o lua.Outcome) reply {
	switch o {
	case lua.AlreadyBought:
		return alreadyBought
	case lua.SoldOut:
		return soldOut
	case lua.TooFew:
		return fewerLeft
	case lua.Held, lua.Unavailable, lua.Crowded, lua.Limited:
		return comeAgain
	default:
		return impossible
	}
}

// answerTo is the reply that a late refusal stands for.
func answerTo(reason order.Reason) reply {
	for _, o := range []lua.Outcome{lua.AlreadyBought, lua.SoldOut, lua.TooFew} {
		if string(reason) == o.String() {
			return answerWith(o)
		}
	}
	return unknown // held, unavailable, or lost: it may have happened or not
}

type want struct {
	buyer    string
	quantity int
}

// stock is the model's state. It is never changed, only copied.
type stock struct {
	left int64
	held []want // sorted by buyer
}

func (s stock) of(buyer string) int {
	for _, w := range s.held {
		if w.buyer == buyer {
			return w.quantity
		}
	}
	return 0
}

func (s stock) take(w want) stock {
	next := stock{s.left - int64(w.quantity), slices.Clone(s.held)}
	for i := range next.held {
		if next.held[i].buyer == w.buyer {
			next.held[i].quantity += w.quantity
			return next
		}
	}
	next.held = append(next.held, w)
	slices.SortFunc(next.held, func(a, b want) int { return strings.Compare(a.buyer, b.buyer) })
	return next
}

// model is a stock with a limit for each buyer.
func model(total int64, limit int) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{stock{left: total}} },
		Step: func(state, input, output any) []any {
			s, w := state.(stock), input.(want)
			over := s.of(w.buyer)+w.quantity > limit
			fits := !over && s.left >= int64(w.quantity)
			right := false
			switch output.(reply) {
			case unknown:
				if fits {
					return []any{s, s.take(w)}
				}
				right = true
			case taken:
				if fits {
					return []any{s.take(w)}
				}
			case alreadyBought:
				right = over
			case soldOut:
				right = s.left == 0 // an edge knows it without asking who asks
			case fewerLeft:
				right = !over && s.left > 0 && s.left < int64(w.quantity)
			case comeAgain, impossible:
			}
			if right {
				return []any{s}
			}
			return nil
		},
		Equal: func(a, b any) bool {
			x, y := a.(stock), b.(stock)
			return x.left == y.left && slices.Equal(x.held, y.held)
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " → ", output) },
	}
	return m.ToModel()
}
