package lua

// SaleState is where a sale stands, in the word that everybody is shown: buyers by
// GET /seckill/{product} and the shop, operators by the API, the console and
// `seckilld activity`.
type SaleState string

// The states of a sale. A new one also needs a line in docs/operations.md, and words
// in standalone/shop/words.js.
const (
	SaleScheduled   SaleState = "scheduled"   // before its start
	SaleOpen        SaleState = "open"        // it sells
	SaleSoldOut     SaleState = "sold_out"    // no unit is left; one may come back
	SaleHeld        SaleState = "held"        // by an operator, who also may not have opened it yet
	SaleUnavailable SaleState = "unavailable" // nobody has held it, but nothing can be sold now
	SaleEnded       SaleState = "ended"       // its end has passed
	SaleClosed      SaleState = "closed"      // over for good
)

// Sale is where the sale stands, by Redis's clock. fresh says that the snapshot is news.
// What is final comes first. A page that counts down is told of an operator's hold and
// of damage, but not of an edge that has no fresh news: that is mostly over before the
// start.
func (s Snapshot) Sale(fresh bool) SaleState {
	switch {
	case s.State == Closed:
		return SaleClosed
	case !s.Now.Before(s.End):
		return SaleEnded
	case s.HeldByOperator():
		return SaleHeld
	case s.State != Open || s.Damaged:
		return SaleUnavailable
	case s.Now.Before(s.Start):
		return SaleScheduled
	case !fresh:
		return SaleUnavailable
	case s.Available <= 0:
		return SaleSoldOut
	}
	return SaleOpen
}
