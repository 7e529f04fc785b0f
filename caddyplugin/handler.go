package caddyplugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/caddyplugin/limit"
	"github.com/seckill-edge/seckill/caddyplugin/ticket"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

const defaultPrefix = "/seckill"

// Handler sells: it answers under its path prefix and passes everything else on.
// It needs the app seckill.
//
//	POST <prefix>/<product>                 buys: body empty or {"quantity":n}
//	POST <prefix>/<product>/ticket          gives a ticket to buy with
//	GET  <prefix>/<product>                 the activity, for a page that counts down
//	GET  <prefix>/<product>/orders/<order>  what became of the caller's order
//	GET  <prefix>/<product>/orders/<order>/events  the same, pushed until it is final
//
// A purchase may have an Idempotency-Key; the same key with the same body is
// answered with the first order again.
// Who buys is read from a placeholder that an authenticator in front has set.
// Refusals are application/problem+json, with the outcome's number as code.
type Handler struct {
	// Identity names the placeholder that holds the id of the logged in user,
	// without braces: one that an authenticator sets, not one that repeats what
	// the client sent. Nobody is logged in where it is empty, and every purchase
	// is answered 401. With forward_auth take the authenticator's answer,
	// http.reverse_proxy.header.Remote-User. Default http.auth.user.id.
	Identity string `json:"identity,omitempty"`
	// InsecureClientIdentity allows an identity that the client states itself,
	// such as http.request.header.X-User-Id. Anybody can then buy in anybody's
	// name: for development and load tests.
	InsecureClientIdentity bool `json:"insecure_client_identity,omitempty"`
	// PathPrefix is what the paths of the API start with, as clients see it.
	// Default /seckill.
	PathPrefix string `json:"path_prefix,omitempty"`
	// RequireTicket refuses purchases without a ticket, which is given only while
	// something is for sale: so the address that sells is of no use before the
	// start. It needs ticket_keys in the app.
	RequireTicket bool `json:"require_ticket,omitempty"`
	// TrustedOrigins are the origins, besides the site's own, whose pages may make a
	// browser buy, such as https://www.example.com. Default: none.
	TrustedOrigins []string `json:"trusted_origins,omitempty"`

	origins  http.CrossOriginProtection
	gate     seller
	tickets  *tickets // nil: none
	identity identity
	// ending is closed when this config is to go: streams end then.
	ending     chan struct{}
	endStreams func()
}

// seller is what the handler needs of a gate.
type seller interface {
	Enter(netip.Addr) limit.Verdict
	EnterUser(user string) limit.Verdict
	Offer(ctx context.Context, product string) gate.Offer
	Admit(product, user string) (orderID string, err error)
	Refused()
	Reserve(context.Context, gate.Click) gate.Decision
	Known(gate.Click) (gate.Decision, bool)
	View(ctx context.Context, product string) (gate.View, lua.Outcome)
	Fate(ctx context.Context, product, user, orderID string) (gate.Fate, error)
	Follow(product, user string, f gate.Fate) (*gate.Stream, error)
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + appName, New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	if h.PathPrefix == "" {
		h.PathPrefix = defaultPrefix
	}
	h.identity = newIdentity(h.Identity)
	app, err := appOf(ctx, appName)
	if err != nil {
		return err
	}
	h.gate, h.tickets = app.engine.gate, app.tickets
	if h.RequireTicket && h.tickets == nil {
		return errors.New("require_ticket: there are no keys to sign tickets with; give the global option seckill ticket_keys {env.NAME}")
	}
	h.endStreamsWith(ctx)
	return nil
}

// Validate refuses what would sell to anybody in anybody's name.
func (h *Handler) Validate() error {
	if err := checkPrefix(h.PathPrefix); err != nil {
		return fmt.Errorf("path_prefix %q: %w", h.PathPrefix, err)
	}
	if err := h.trustOrigins(); err != nil {
		return err
	}
	return h.identity.check(h.InsecureClientIdentity)
}

// ServeHTTP answers what is under the prefix. The order of steps is that of
// cost: what needs no lookup comes first, Redis last.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	what, product, orderID := route(h.PathPrefix, r.URL.Path)
	switch {
	case what == notOurs:
		return next.ServeHTTP(w, r)
	case what == ticketCall && h.tickets == nil:
		what = unknownPath
	}
	buying := what == activityCall && r.Method == http.MethodPost
	if !entered(r.Context()) && !enter(w, r, h.gate) {
		return nil
	}
	if !buying && !allowed(what, r.Method) {
		refuseMethod(w, what)
		return nil
	}
	if r.Method == http.MethodPost && h.foreign(r) { // before it costs its victim anything
		leaveRest(w, r)
		crossSite.write(w, 0)
		return nil
	}
	var user string
	if buying || what == ticketCall || what == orderCall || what == eventsCall {
		if user = h.identity.of(r); user == "" {
			refuseStranger(w, r)
			return nil
		}
		if !order.ValidUser(user) {
			badUser.write(w, 0)
			return nil
		}
		if v := h.gate.EnterUser(user); !let(w, &v) {
			return nil
		}
	}
	if p := h.unread(r); p != nil {
		refuseUnread(w, r, p)
		return nil
	}
	switch {
	case buying:
		h.buy(w, r, product, user)
	case what == ticketCall:
		h.giveTicket(w, r, product, user)
	case what == activityCall:
		h.showActivity(w, r, product)
	case what == orderCall:
		h.showOrder(w, r, product, user, orderID)
	case what == eventsCall:
		h.followOrder(w, r, product, user, orderID)
	case what == badProduct:
		refusalOf(lua.NoProduct).write(w, 0)
	default:
		nothingHere.write(w, 0)
	}
	return nil
}

func (h *Handler) buy(w http.ResponseWriter, r *http.Request, product, user string) {
	quantity, ok, err := readQuantity(w, r)
	switch {
	case err != nil:
		refuseBody(w, r, err)
		return
	case !ok:
		badBody.write(w, 0)
		return
	}
	key, ok := idempotencyKey(r)
	if !ok {
		badKey.write(w, 0)
		return
	}
	click := gate.Click{ProductID: product, UserID: user, Quantity: quantity, Key: key}
	if !h.takeTicket(w, r, &click) {
		return
	}
	h.answer(w, click, h.gate.Reserve(r.Context(), click))
}

// answer says how a click was decided.
func (h *Handler) answer(w http.ResponseWriter, click gate.Click, decision gate.Decision) {
	if !let(w, &decision.Limit) {
		return
	}
	switch decision.Outcome {
	case lua.Reserved:
		writeQueued(w, h.PathPrefix, click, decision)
	case lua.NoTicket:
		h.refuseTicket(w, ticket.Used)
	case lua.AlreadyBought:
		refusalOf(lua.AlreadyBought).writeOrder(w, decision.OrderID)
	default:
		refusalOf(decision.Outcome).write(w, decision.RetryAfter)
	}
}

func (h *Handler) showActivity(w http.ResponseWriter, r *http.Request, product string) {
	view, outcome := h.gate.View(r.Context(), product)
	switch outcome {
	case lua.Reserved:
		writeActivity(w, view)
	case lua.NoProduct:
		refusalOf(lua.NoProduct).write(w, 0)
	default:
		refusalOf(outcome).write(w, time.Second)
	}
}

func (h *Handler) showOrder(w http.ResponseWriter, r *http.Request, product, user, orderID string) {
	if fate, ok := h.fate(w, r, product, user, orderID, notNow); ok {
		writeFate(w, fate)
	}
}

// fate reads what became of an order, or answers why it cannot: early while nobody who
// knows can be asked.
func (h *Handler) fate(w http.ResponseWriter, r *http.Request, product, user, orderID string, early func(http.ResponseWriter)) (gate.Fate, bool) {
	if !order.ValidID(orderID) {
		noOrder.write(w, 0)
		return gate.Fate{}, false
	}
	fate, err := h.gate.Fate(r.Context(), product, user, orderID)
	switch {
	case errors.Is(err, gate.ErrNoOrder):
		noOrder.write(w, 0)
	case err != nil:
		early(w)
	}
	return fate, err == nil
}

// notNow answers who asks for an order that cannot be looked up now.
func notNow(w http.ResponseWriter) { orderUnavailable.write(w, time.Second) }

// allowed says whether something that is no purchase may be asked for so.
func allowed(what call, method string) bool {
	switch what {
	case ticketCall:
		return method == http.MethodPost
	case eventsCall:
		return method == http.MethodGet
	default:
		return method == http.MethodGet || method == http.MethodHead
	}
}

// refuseMethod answers a method that the resource does not have; where there is
// no resource, that comes first.
func refuseMethod(w http.ResponseWriter, what call) {
	switch what {
	case activityCall:
		w.Header().Set("Allow", "GET, HEAD, POST")
	case orderCall:
		w.Header().Set("Allow", "GET, HEAD")
	case eventsCall:
		w.Header().Set("Allow", "GET")
	case ticketCall:
		w.Header().Set("Allow", "POST")
	case badProduct:
		refusalOf(lua.NoProduct).write(w, 0)
		return
	default:
		nothingHere.write(w, 0)
		return
	}
	wrongMethod.write(w, 0)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ seller                      = (*gate.Gate)(nil)
)
