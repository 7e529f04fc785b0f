package dead

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
)

// Letter is one dead letter, read as far as it can be.
type Letter struct {
	// ID names it to people: the message's id, escaped, or "body-" and a digest of
	// its body if it has none. Where it names several different letters, # and the
	// digest follow. Letters that a crash has buried twice share it.
	ID string
	// Reason is why it was buried, as the backend worded it then.
	Reason string
	// Attempt counts the failed tries to store it; 0 if it was none's fault but its
	// own from the start.
	Attempt int
	// ProductID, ActivityID, Orders and Bad are what the body says; empty if Wrong,
	// which says that nothing of it can be read.
	ProductID, ActivityID string
	Orders                []order.Order
	Bad                   []order.BadEntry
	Wrong                 error
	// Since is when the oldest of its orders was reserved; zero if it does not tell.
	Since time.Time
	// Message is the letter as the broker holds it.
	Message queue.Message
}

func read(m queue.Message) Letter {
	l := Letter{ID: idOf(m), Reason: m.Headers[queue.HeaderReason], Message: m}
	l.Attempt, _ = strconv.Atoi(m.Headers[queue.HeaderAttempt])
	l.Orders, l.Bad, l.Wrong = order.ParseMessage(m.Body)
	if l.Wrong == nil {
		l.ProductID, l.ActivityID = order.MessageHeader(m.Body)
	}
	for _, o := range l.Orders {
		l.older(o.ReservedAt)
	}
	for _, b := range l.Bad {
		if at, ok := order.IDTime(b.OrderID); ok {
			l.older(at)
		}
	}
	return l
}

func (l *Letter) older(at time.Time) {
	if l.Since.IsZero() || at.Before(l.Since) {
		l.Since = at
	}
}

// idOf is a name for m that can be typed. An entry of a message without an id was
// once called /0, like any other.
func idOf(m queue.Message) string {
	if m.ID != "" && m.ID[0] != '/' {
		return Escape(m.ID)
	}
	return "body-" + digestOf(m)
}

func digestOf(m queue.Message) string {
	digest := sha256.Sum256(m.Body)
	return hex.EncodeToString(digest[:6])
}

// exact names this letter also where others share its id.
func (l *Letter) exact() string { return l.ID + "#" + digestOf(l.Message) }

// is says whether id means this letter.
func (l *Letter) is(id string) bool { return l.ID == id || l.exact() == id }

// Hopeless says that no order of it can be read: replayed, it would be back at once.
func (l *Letter) Hopeless() bool { return len(l.Orders) == 0 }

// tellApart gives different letters of one id their exact ones.
func tellApart(letters []*Letter) {
	bodies := map[string]map[string]bool{}
	for _, l := range letters {
		if bodies[l.ID] == nil {
			bodies[l.ID] = map[string]bool{}
		}
		bodies[l.ID][l.exact()] = true
	}
	for _, l := range letters {
		if len(bodies[l.ID]) > 1 {
			l.ID = l.exact()
		}
	}
}

// Plain makes text for people safe for a terminal and a log, as Escape does, and
// leaves its quotes and backslashes as they are.
func Plain(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == '"' || r == '\\' {
			out.WriteRune(r)
		} else {
			out.WriteString(Escape(text[:size]))
		}
		text = text[size:]
	}
	return out.String()
}

// Escape makes text of any bytes safe for a terminal and a log: what cannot be
// printed, and what reorders a line, becomes \x, \u or the like. Text that has
// no backslash, quote or such in it stays as it is.
func Escape(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
