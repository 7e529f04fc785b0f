package consume

import (
	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

// message is one delivery and what was found in it.
type message struct {
	delivery queue.Delivery
	orders   []order.Order
	bad      []order.BadEntry
	// wrong says that nothing of it can be read.
	wrong error
	// fell says that this program has panicked over it once; buried counts the bad
	// entries that were sent to the dead letters.
	fell   bool
	buried int
	// unknown are its orders that nobody has reserved.
	unknown []order.Order
	// failed are its orders that the database does not take, with the reason.
	failed []failure
	// refused are its orders that went to the dead letters, as SQL has them now;
	// Redis is to be told.
	refused []settle.Order
}

// failure is an order that cannot be stored, though the database is there.
type failure struct {
	order order.Order
	err   error
}

// batch is what is stored in one go.
type batch struct {
	messages []*message
	count    int
}

func (b *batch) add(d queue.Delivery) {
	m := &message{delivery: d}
	m.wrong = duty.Safely(func() (err error) {
		m.orders, m.bad, err = order.ParseMessage(d.Message().Body)
		return err
	})
	b.messages = append(b.messages, m)
	b.count += len(m.orders)
}

// size is the number of orders, with one for a message that has none, so that a
// flood of bad messages ends a batch too.
func (b *batch) size() int { return b.count + len(b.messages) }

// orders are all orders of the batch; of those with one id the first.
func (b *batch) orders() []order.Order {
	out := make([]order.Order, 0, b.count)
	seen := make(map[string]struct{}, b.count)
	for _, m := range b.messages {
		for _, o := range m.orders {
			if _, twice := seen[o.ID]; !twice {
				seen[o.ID] = struct{}{}
				out = append(out, o)
			}
		}
	}
	return out
}

// byProduct are all orders of the batch, also those that come twice, by product.
func (b *batch) byProduct() map[string][]*order.Order {
	out := map[string][]*order.Order{}
	for _, m := range b.messages {
		for i := range m.orders {
			o := &m.orders[i]
			out[o.ProductID] = append(out[o.ProductID], o)
		}
	}
	return out
}

// setApart takes the orders that are unknown, of those that byProduct returned, from
// what is to be stored.
func (b *batch) setApart(unknown map[*order.Order]bool) {
	for _, m := range b.messages {
		var rest []order.Order
		for i := range m.orders {
			if o := &m.orders[i]; unknown[o] {
				m.unknown = append(m.unknown, *o)
			} else {
				rest = append(rest, *o)
			}
		}
		m.orders = rest
	}
}

// byID are the orders that orders returns, by id.
func (b *batch) byID() map[string]*order.Order {
	out := make(map[string]*order.Order, b.count)
	for _, m := range b.messages {
		for i := range m.orders {
			if o := &m.orders[i]; out[o.ID] == nil {
				out[o.ID] = o
			}
		}
	}
	return out
}

// failed notes with each message which of its orders could not be stored.
func (b *batch) failed(failures []failure) {
	for _, f := range failures {
		for _, m := range b.messages {
			if m.carries(f.order.ID) {
				m.failed = append(m.failed, f)
				break // an order that came twice is put aside once
			}
		}
	}
}

func (m *message) carries(id string) bool {
	for i := range m.orders {
		if m.orders[i].ID == id {
			return true
		}
	}
	return false
}
