package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seckill-edge/seckill/caddyplugin/token"
	"github.com/seckill-edge/seckill/internal/order"
)

// shop answers as the edge and the console are documented to, and errs on
// request.
type shop struct {
	mu        sync.Mutex
	stock     int64
	total     int64
	limit     int
	ticketed  bool              // a click needs a ticket
	tokens    *token.Verifier   // what buyers need, if not nil
	owners    map[string]string // order id → user
	bought    map[string]string // user → order id
	addresses map[string]bool   // that clicks came from

	answer  func(w http.ResponseWriter, n int) bool // true: it has answered click n
	lose    func(n int) bool                        // true: the answer to click n is lost on its way
	keys    map[string]string                       // user and Idempotency-Key → order id
	audited func(*audit)                            // changes what the console says
	fate    func(id string) string
	clicks  int
	audits  int
	token   string // that the console asks for

	// moved are the orders that were paid, cancelled or have expired; patience is
	// how many audits an order waits for its payment, 0 is no payment stage.
	moved    map[string]string
	patience int
	refuse   func(verb string) (status int) // of a payment or cancellation, if not 0
	// shown changes what the console says of the activity.
	shown  func(*activity)
	reason string // of rejected orders
}

func newShop(t *testing.T, units int64) (*shop, string) {
	s := &shop{
		stock: units, total: units, limit: 1,
		owners: map[string]string{}, bought: map[string]string{}, keys: map[string]string{}, moved: map[string]string{}, addresses: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /seckill/1001", func(w http.ResponseWriter, r *http.Request) {
		if s.user(r) == "" {
			refuse(w, 401, 0)
			return
		}
		fmt.Fprintf(w, `{"product_id":"1001","state":"open","left":true,"limit":%d}`, s.limit)
	})
	mux.HandleFunc("POST /seckill/1001", s.buy)
	mux.HandleFunc("POST /seckill/1001/ticket", s.ticket)
	mux.HandleFunc("GET /seckill/1001/orders/{id}", s.order)
	mux.HandleFunc("POST /api/orders/{id}/{verb}", s.move)
	mux.HandleFunc("GET /api/activities/1001", s.show)
	mux.HandleFunc("GET /api/activities/1001/audit", s.audit)
	mux.HandleFunc("GET /seckill/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, -5) })
	// What a web server says that has no such site.
	mux.HandleFunc("GET /elsewhere/", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return s, server.URL
}

// user is who asks; empty if his token is no good.
func (s *shop) user(r *http.Request) string {
	if s.tokens == nil {
		return r.Header.Get("X-User-Id")
	}
	user, err := s.tokens.User(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if err != nil || r.Header.Get("X-User-Id") != "" {
		return ""
	}
	return user
}

// ticket gives one as long as there is stock.
func (s *shop) ticket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.ticketed:
		refuse(w, 404, 0)
	case s.stock == 0:
		refuse(w, 410, -6)
	default:
		fmt.Fprintf(w, `{"code":0,"ticket":"for %s"}`, s.user(r))
	}
}

func (s *shop) buy(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticketed && r.Header.Get("Seckill-Ticket") != "for "+s.user(r) {
		refuse(w, 403, -13)
		return
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	s.addresses[host] = true
	s.clicks++
	if s.answer != nil && s.answer(w, s.clicks) {
		return
	}
	user := s.user(r)
	key := user + " " + r.Header.Get("Idempotency-Key")
	id := s.keys[key]
	switch {
	case id != "":
	case s.held(user) >= s.limit:
		refuse(w, 409, -4)
	case s.stock == 0:
		refuse(w, 410, -6)
	default:
		s.stock--
		id, _ = order.NewID(time.UnixMilli(int64(s.clicks)), strings.NewReader("0123456789"))
		s.bought[user], s.owners[id], s.keys[key] = id, user, id
	}
	if s.lose != nil && s.lose(s.clicks) {
		panic(http.ErrAbortHandler)
	}
	if id != "" {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"code":0,"status":"queued","order_id":%q,"product_id":"1001","quantity":1}`, id)
	}
}

// held is how many units a buyer has, as the record of his orders says; none once that
// was cleared.
func (s *shop) held(user string) (units int) {
	if s.bought[user] == "" {
		return 0
	}
	for _, owner := range s.owners {
		if owner == user {
			units++
		}
	}
	return units
}

func refuse(w http.ResponseWriter, status, code int) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"urn:seckill:no","title":"no","status":%d,"code":%d}`, status, code)
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, status := r.PathValue("id"), "created"
	if s.owners[id] == "" || s.owners[id] != s.user(r) {
		refuse(w, 404, -5)
		return
	}
	if s.moved[id] != "" {
		status = s.moved[id]
	}
	if s.fate != nil {
		if status = s.fate(id); status == "" {
			refuse(w, 404, -5)
			return
		}
	}
	fmt.Fprintf(w, `{"order_id":%q,"status":%q,"reason":%q,"quantity":1}`, id, status, s.reason)
}

func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		refuse(w, http.StatusUnauthorized, 0)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := activity{State: "open", PayWindowSeconds: int64(s.patience), Redis: &inRedis{State: "open"}}
	if s.shown != nil {
		s.shown(&a)
	}
	_ = json.NewEncoder(w).Encode(a)
}

func (s *shop) audit(w http.ResponseWriter, r *http.Request) {
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		refuse(w, http.StatusUnauthorized, 0)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audits++
	if s.patience > 0 && s.audits%s.patience == 0 {
		for id := range s.owners {
			if s.moved[id] == "" {
				s.moved[id] = "expired"
				s.stock++
			}
		}
	}
	n := int64(len(s.owners))
	a := audit{
		Total: s.total, Available: s.stock, Sold: s.total - s.stock, Consistent: true, QueueKnown: true,
		Orders: map[string]int64{"created": n}, Units: map[string]int64{"created": n},
	}
	if s.patience > 0 {
		a.Units, a.Sold = map[string]int64{"created": n - int64(len(s.moved))}, 0
		for _, state := range s.moved {
			a.Units[state]++
		}
		a.Orders, a.Frozen, a.Sold = a.Units, a.Units["created"], a.Units["paid"]
	}
	if s.audited != nil {
		s.audited(&a)
	}
	_ = json.NewEncoder(w).Encode(a)
}

// move pays or cancels an order that waits for it.
func (s *shop) move(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, verb := r.PathValue("id"), r.PathValue("verb")
	if s.refuse != nil {
		if status := s.refuse(verb); status != 0 {
			refuse(w, status, 0)
			return
		}
	}
	switch {
	case verb == "paid" && s.moved[id] == "":
		s.moved[id] = "paid"
		fmt.Fprint(w, `{"outcome":"applied"}`)
	case verb == "paid":
		fmt.Fprint(w, `{"outcome":"refund_due"}`)
	case s.moved[id] != "":
		refuse(w, http.StatusConflict, 0)
	default:
		s.moved[id] = "cancelled"
		s.stock++
		fmt.Fprint(w, `{}`)
	}
}
