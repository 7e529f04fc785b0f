package lua

// Outcome is what Redis says to one request to buy. It is a value, not an error.
// The numbers down to -7 are the field's; new ones go below.
type Outcome int

// The outcomes of Reserve.
const (
	Reserved      Outcome = 0  // the units are the buyer's
	BadArguments  Outcome = -1 // quantity or id malformed, or more than the limit per user
	NotStarted    Outcome = -2
	Ended         Outcome = -3 // after the end, or closed by the operator
	AlreadyBought Outcome = -4 // with the limit used up, Result.OrderID says by which order
	NoProduct     Outcome = -5 // no activity of this product
	SoldOut       Outcome = -6
	TooFew        Outcome = -7 // some units are left, fewer than asked for
	Held          Outcome = -8 // an operator holds the sale
	KeyReused     Outcome = -9 // an earlier request had this key and asked for another quantity
)

// Outcomes that an edge gives by itself; no script answers them.
const (
	Limited Outcome = -10 // too many calls: of an address, a buyer, a product, an edge or all edges
	Crowded Outcome = -11 // more is on its way to Redis than the units left can serve; come again
	Denied  Outcome = -12 // the client's address is on the deny list
)

// NoTicket: no ticket came with the click, or none that is good for it; a script
// says so of an order id that may have been used before.
const NoTicket Outcome = -13

// Unavailable: nothing can be sold for now, and nobody has decided so. Redis says
// it until the stock is proven, of a stale epoch, of keys that are missing or damaged,
// and of a call that came too late; an edge while Redis does not answer, refuses
// writes or has not been heard of for too long, and when too many wait. It is also
// what the scripts that move orders answer when the keys are damaged.
//
// A new outcome also needs a refusal in caddyplugin/problem.go, a line in the
// README's table, words in standalone/shop/words.js, and a kind in bench/rush.
const Unavailable Outcome = -14

// Outcomes lists every outcome, down to the last, which is Unavailable.
func Outcomes() []Outcome {
	all := make([]Outcome, 0, 1-Unavailable)
	for o := Reserved; o >= Unavailable; o-- {
		all = append(all, o)
	}
	return all
}

// String names the outcome the way metrics and logs do.
func (o Outcome) String() string {
	switch o {
	case Reserved:
		return "reserved"
	case BadArguments:
		return "bad_arguments"
	case NotStarted:
		return "not_started"
	case Ended:
		return "ended"
	case AlreadyBought:
		return "already_bought"
	case NoProduct:
		return "no_product"
	case SoldOut:
		return "sold_out"
	case TooFew:
		return "too_few"
	case Held:
		return "held"
	case KeyReused:
		return "key_reused"
	case Limited:
		return "limited"
	case Crowded:
		return "crowded"
	case Denied:
		return "denied"
	case NoTicket:
		return "no_ticket"
	case Unavailable:
		return "unavailable"
	}
	return "unknown"
}
