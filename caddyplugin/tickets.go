package caddyplugin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/ticket"
	"github.com/seckill-edge/seckill/lua"
)

const (
	// ticketHeader is the field of a purchase that holds its ticket.
	ticketHeader      = "Seckill-Ticket"
	defaultTicketLife = time.Minute
)

var ticketLifeBound = gate.Bound[time.Duration]{Min: time.Second, Max: gate.MaxTicketLife}

// tickets gives tickets and takes them. Nil does neither.
type tickets struct {
	keys    *ticket.Keys
	life    time.Duration
	given   prometheus.Counter
	missing prometheus.Counter
	taken   [ticket.Used + 1]prometheus.Counter // by flaw
}

// newTickets reads the keys; nil if there are none. Errors show no secret.
func newTickets(placeholders []string, life time.Duration) (*tickets, error) {
	if len(placeholders) == 0 {
		if life != 0 {
			return nil, errors.New("ticket_life: there are no ticket_keys, so there are no tickets")
		}
		return nil, nil
	}
	t := &tickets{life: life}
	if life == 0 {
		t.life = defaultTicketLife
	}
	if !ticketLifeBound.Has(t.life) {
		return nil, fmt.Errorf("ticket_life %v: must be %v", life, ticketLifeBound)
	}
	secrets := make([]string, len(placeholders))
	var err error
	for i, p := range placeholders {
		if secrets[i], err = secretOf("ticket_keys", p); err != nil {
			return nil, err
		}
	}
	if t.keys, err = ticket.NewKeys(secrets); err != nil {
		return nil, fmt.Errorf("ticket_keys: %w", err)
	}
	return t, nil
}

// register adds the figures of tickets to a config's registry. They begin at 0
// with each config.
func (t *tickets) register(registry *prometheus.Registry) error {
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "tickets_total",
		Help: "Tickets given, and purchases by their ticket: good, missing, or what was wrong with it.",
	}, []string{"result"})
	if registry != nil { // else nobody scrapes it
		if err := registry.Register(counters); err != nil {
			return fmt.Errorf("registering the figures of tickets: %w", err)
		}
	}
	t.given, t.missing = counters.WithLabelValues("given"), counters.WithLabelValues("missing")
	for flaw := range t.taken {
		t.taken[flaw] = counters.WithLabelValues(ticket.Flaw(flaw).String())
	}
	return nil
}

// giveTicket answers the request for a ticket: with one if a unit could be bought
// now, by this edge's own view, else as a purchase would be answered. It asks
// Redis nothing.
func (h *Handler) giveTicket(w http.ResponseWriter, r *http.Request, product, user string) {
	if has, err := hasBody(w, r); err != nil || has {
		if err != nil {
			refuseBody(w, r, err)
		} else {
			bodyNotRead.write(w, 0)
		}
		return
	}
	offer := h.gate.Offer(r.Context(), product)
	if offer.Outcome != lua.Reserved {
		refusalOf(offer.Outcome).write(w, offer.RetryAfter)
		return
	}
	id, err := h.gate.Admit(product, user)
	if err != nil {
		refusalOf(lua.Unavailable).write(w, time.Second)
		return
	}
	h.tickets.given.Inc()
	expires := offer.Now.Add(h.tickets.life)
	holder := ticket.Holder{UserID: user, ProductID: product, ActivityID: offer.ActivityID}
	writeTicket(w, h.tickets.keys.Sign(holder, id, expires), expires)
}

// takeTicket fills in what a purchase's ticket says of it; false if it has
// answered the request, because the ticket is not good or there should be one.
func (h *Handler) takeTicket(w http.ResponseWriter, r *http.Request, c *gate.Click) bool {
	if h.tickets == nil {
		return true
	}
	values := r.Header[ticketHeader]
	switch {
	case len(values) == 0 && !h.RequireTicket:
		return true
	case len(values) > 1:
		h.gate.Refused()
		h.refuseTicket(w, ticket.Forged)
		return false
	}
	offer := h.gate.Offer(r.Context(), c.ProductID)
	if offer.ActivityID == "" { // nobody can say whether it is good
		refusalOf(min(offer.Outcome, lua.BadArguments)).write(w, offer.RetryAfter)
		return false
	}
	if len(values) == 0 {
		if !h.answerKnown(w, *c) {
			h.refuseWithout(w, offer)
		}
		return false
	}
	holder := ticket.Holder{UserID: c.UserID, ProductID: c.ProductID, ActivityID: offer.ActivityID}
	id, flaw := h.tickets.keys.Check(values[0], holder, offer.Now)
	c.OrderID, c.ActivityID = id, offer.ActivityID
	if flaw == ticket.None {
		h.tickets.taken[ticket.None].Inc()
		return true
	}
	if !h.answerKnown(w, *c) {
		h.gate.Refused()
		h.refuseTicket(w, flaw)
	}
	return false
}

// answerKnown answers who may not buy with what he has bought before by the same
// Idempotency-Key or ticket: a client that has lost the answer asks again, perhaps
// after its ticket has expired. False if that is nothing.
func (h *Handler) answerKnown(w http.ResponseWriter, c gate.Click) bool {
	decision, ok := h.gate.Known(c)
	if ok {
		h.answer(w, c, decision)
	}
	return ok
}

// refuseWithout answers who has no ticket, be it that nobody can have one yet.
func (h *Handler) refuseWithout(w http.ResponseWriter, offer gate.Offer) {
	if offer.Outcome == lua.NotStarted {
		refusalOf(lua.NotStarted).write(w, offer.RetryAfter)
		return
	}
	h.tickets.missing.Inc()
	h.gate.Refused()
	ticketMissing.write(w, 0)
}

func (h *Handler) refuseTicket(w http.ResponseWriter, flaw ticket.Flaw) {
	h.tickets.taken[flaw].Inc()
	ticketFlaws[flaw].write(w, 0)
}

// The refusals for want of a good ticket.
var (
	ticketMissing = newTicketProblem("missing", "This purchase needs a ticket. Fetch one by POST to the product's path followed by /ticket, and send it as Seckill-Ticket.")
	ticketFlaws   = [...]problem{
		ticket.Forged:        newTicketProblem("invalid", "This is no ticket of ours. Fetch one."),
		ticket.OtherUser:     newTicketProblem("other_buyer", "This ticket was given to another buyer. Fetch your own."),
		ticket.OtherProduct:  newTicketProblem("other_product", "This ticket is for another product. Fetch one for this."),
		ticket.OtherActivity: newTicketProblem("other_activity", "This ticket is for another sale of this product. Fetch a new one."),
		ticket.Expired:       newTicketProblem("expired", "This ticket has expired. Fetch a new one."),
		ticket.Used:          newTicketProblem("used", "This ticket may have been used, before your last eight orders that were given back. Fetch a new one."),
	}
)

func newTicketProblem(name, detail string) problem {
	return newProblem(http.StatusForbidden, lua.NoTicket, "ticket_"+name, "No good ticket", detail)
}
