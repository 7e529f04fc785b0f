package order

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxPerMessage is the most orders one message carries.
const MaxPerMessage = 256

const version = "seckill/1"

// ErrMessage reports a message of which nothing can be read: another version, no
// valid header, too many entries.
var ErrMessage = errors.New("not a seckill/1 message")

// BadEntry is an entry of a message that is wrong in itself. Its neighbours are
// unharmed.
type BadEntry struct {
	// OrderID is empty unless it could be read.
	OrderID string
	// Raw is the entry as it came; Err says what is wrong with it.
	Raw []byte
	Err error
}

// AppendMessage appends the body of one queue message to dst: orders of one
// activity, 1 to MaxPerMessage, reserved together. All must carry the product
// and activity of the first; fields must be valid (the edge has checked them).
//
// The body is text, a line an order, fields separated by tabs, because every
// order is written once and read once and JSON costs both sides several times
// as much:
//
//	seckill/1 <tab> product <tab> activity
//	order id <tab> user <tab> quantity <tab> claim <tab> reserved at, ms
func AppendMessage(dst []byte, orders []Order) []byte {
	dst = append(dst, version...)
	dst = append(dst, '\t')
	dst = append(dst, orders[0].ProductID...)
	dst = append(dst, '\t')
	dst = append(dst, orders[0].ActivityID...)
	for i := range orders {
		o := &orders[i]
		dst = append(dst, '\n')
		dst = append(dst, o.ID...)
		dst = append(dst, '\t')
		dst = append(dst, o.UserID...)
		dst = append(dst, '\t')
		dst = strconv.AppendInt(dst, int64(o.Quantity), 10)
		dst = append(dst, '\t')
		dst = strconv.AppendInt(dst, int64(o.Claim), 10)
		dst = append(dst, '\t')
		dst = strconv.AppendInt(dst, o.ReservedAt.UnixMilli(), 10)
	}
	return dst
}

// ParseMessage reads what AppendMessage wrote. Entries that are wrong in
// themselves come back as bad, the rest as orders. The error is ErrMessage
// (wrapped) when the message as a whole cannot be read.
func ParseMessage(body []byte) (orders []Order, bad []BadEntry, err error) {
	head, rest, more := bytes.Cut(body, []byte{'\n'})
	fields := bytes.Split(head, []byte{'\t'})
	if len(fields) != 3 || string(fields[0]) != version {
		return nil, nil, fmt.Errorf("%w: its header is %.80q", ErrMessage, head)
	}
	product, activity := string(fields[1]), string(fields[2])
	if !ValidProduct(product) || !ValidProduct(activity) {
		return nil, nil, fmt.Errorf("%w: product %.80q, activity %.80q", ErrMessage, product, activity)
	}
	if !more {
		return nil, nil, fmt.Errorf("%w: it carries no order", ErrMessage)
	}
	lines := bytes.Split(rest, []byte{'\n'})
	if len(lines) > MaxPerMessage {
		return nil, nil, fmt.Errorf("%w: %d orders, more than %d", ErrMessage, len(lines), MaxPerMessage)
	}
	orders = make([]Order, 0, len(lines))
	for _, line := range lines {
		o, err := parseEntry(line)
		if err != nil {
			bad = append(bad, BadEntry{OrderID: o.ID, Raw: line, Err: err})
			continue
		}
		o.ProductID, o.ActivityID = product, activity
		orders = append(orders, o)
	}
	return orders, bad, nil
}

// MessageHeader is the product and the activity of a message that ParseMessage
// has read without an error; empty for any other.
func MessageHeader(body []byte) (product, activity string) {
	head, _, _ := bytes.Cut(body, []byte{'\n'})
	fields := bytes.Split(head, []byte{'\t'})
	if len(fields) != 3 {
		return "", ""
	}
	return string(fields[1]), string(fields[2])
}

// No order was reserved before this program was, and a clock that is decades ahead
// makes times that nothing can be judged by: 2020-01-01 and 2099-12-31T23:59:59.999Z.
const (
	firstReserved = 1_577_836_800_000
	lastReserved  = 4_102_444_799_999
)

// parseEntry returns the order id even with an error, if it could be read.
func parseEntry(line []byte) (o Order, err error) {
	fields := bytes.Split(line, []byte{'\t'})
	if id := string(fields[0]); ValidID(id) {
		o.ID = id
	}
	if len(fields) != 5 {
		return o, fmt.Errorf("entry has %d fields, not 5", len(fields))
	}
	if o.ID == "" {
		return o, fmt.Errorf("order id %.40q", fields[0])
	}
	if o.UserID = string(fields[1]); !ValidUser(o.UserID) {
		return o, fmt.Errorf("user id %.140q", fields[1])
	}
	if o.Quantity, err = number(fields[2], MaxQuantity); err != nil {
		return o, fmt.Errorf("quantity: %w", err)
	}
	if o.Claim, err = number(fields[3], MaxQuantity); err != nil {
		return o, fmt.Errorf("claim: %w", err)
	}
	ms, err := number(fields[4], lastReserved)
	if err != nil || ms < firstReserved {
		return o, fmt.Errorf("reserved at %.40q: no time between the years 2020 and 2100, in milliseconds", fields[4])
	}
	o.ReservedAt = time.UnixMilli(int64(ms))
	return o, nil
}

// number reads decimal digits without sign or leading zero, 1 to limit.
func number(s []byte, limit int) (int, error) {
	if len(s) == 0 || s[0] < '1' || s[0] > '9' {
		return 0, fmt.Errorf("%.40q is not a number from 1 to %d", s, limit)
	}
	n, err := strconv.Atoi(string(s))
	if err != nil || n > limit {
		return 0, fmt.Errorf("%.40q is not a number from 1 to %d", s, limit)
	}
	return n, nil
}
