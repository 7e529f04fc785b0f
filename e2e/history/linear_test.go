package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const timeout = 250 * time.Millisecond

// at is a click of a buyer for so many units, from and until in milliseconds.
func at(buyer string, quantity, from, until, status int, code lua.Outcome) Click {
	return Click{
		Buyer: buyer, Quantity: quantity, Status: status, Code: code, OrderID: fmt.Sprint(buyer, from),
		Start: begin.Add(time.Duration(from) * time.Millisecond), End: begin.Add(time.Duration(until) * time.Millisecond),
	}
}

func TestLinearizable(t *testing.T) {
	tests := []struct {
		name   string
		clicks []Click
		told   []Told
		want   bool
	}{
		{"one after the other", []Click{
			at("a", 2, 0, 10, 202, 0), at("a", 1, 20, 30, 409, lua.AlreadyBought), at("b", 1, 40, 50, 202, 0), at("c", 1, 60, 70, 410, lua.SoldOut),
		}, nil, true},
		{"the last unit, refused while it is being sold", []Click{
			at("a", 2, 0, 10, 202, 0), at("b", 1, 20, 90, 202, 0), at("c", 1, 30, 40, 410, lua.SoldOut),
		}, nil, true},
		{"fewer left", []Click{at("a", 2, 0, 10, 202, 0), at("b", 2, 20, 30, 409, lua.TooFew), at("b", 1, 40, 50, 202, 0)}, nil, true},
		{"come again does nothing", []Click{at("a", 2, 0, 10, 503, lua.Held), at("a", 2, 12, 15, 503, lua.Crowded), at("a", 2, 20, 30, 202, 0)}, nil, true},
		{"no answer, and it happened", []Click{at("a", 2, 0, 10, 0, 0), at("a", 1, 20, 30, 409, lua.AlreadyBought)}, nil, true},
		{"no answer, and it did not", []Click{at("a", 2, 0, 10, 0, 0), at("a", 2, 20, 30, 202, 0)}, nil, true},
		{
			"queued late, taken later",
			[]Click{at("a", 2, 0, 260, 202, 0), at("b", 2, 300, 310, 202, 0)},
			[]Told{{OrderID: "a0", Status: 200, State: order.Rejected, Reason: order.Reason(lua.TooFew.String())}},
			true,
		},

		{"sold four units of three", []Click{at("a", 2, 0, 10, 202, 0), at("b", 2, 20, 30, 202, 0)}, nil, false},
		{"a buyer over the limit", []Click{at("a", 2, 0, 10, 202, 0), at("a", 1, 0, 10, 202, 0)}, nil, false},
		{"sold out too early", []Click{at("a", 2, 0, 10, 202, 0), at("b", 1, 20, 30, 410, lua.SoldOut)}, nil, false},
		{"sold out, and then not", []Click{
			at("a", 2, 0, 10, 202, 0), at("c", 1, 20, 30, 410, lua.SoldOut), at("b", 1, 40, 50, 202, 0),
		}, nil, false},
		{"already bought before buying", []Click{at("a", 1, 0, 10, 409, lua.AlreadyBought), at("a", 2, 20, 30, 202, 0)}, nil, false},
		{"an answer that this sale does not have", []Click{at("a", 1, 0, 10, 410, lua.Ended)}, nil, false},
		{"unknown, but it must have happened twice", []Click{
			at("a", 1, 0, 10, 0, 0), at("b", 1, 20, 30, 202, 0), at("c", 1, 40, 50, 410, lua.SoldOut),
		}, nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := &History{Total: 3, Limit: 2, Clicks: test.clicks, Told: test.told, End: End{At: begin.Add(time.Second)}}
			ok, undecided := Linearizable(h, timeout, 10*time.Second)
			require.False(t, undecided)
			require.Equal(t, test.want, ok)
		})
	}
}
