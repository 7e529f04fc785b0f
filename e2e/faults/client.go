package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// client is how buyers' browsers reach the edges.
type client struct {
	http  *http.Client
	edges []string // base URLs
	sale  sale
}

// patience is how long a browser waits for an answer.
const patience = 3 * time.Second

func newClient(edges []string, s sale) *client {
	return &client{
		http:  &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		edges: edges, sale: s,
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends one request and decodes the answer; status 0 means none, or one that
// was cut off.
func (c *client) ask(ctx context.Context, method, url, buyer, body string, into any) int {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("X-User-Id", buyer)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	_ = json.Unmarshal(text, into) // a problem's status is a number, which is no harm
	return resp.StatusCode
}

// click asks to buy at one edge.
func (c *client) click(ctx context.Context, edge int, buyer string, quantity int) history.Click {
	var said struct {
		Code      lua.Outcome `json:"code"`
		OrderID   string      `json:"order_id"`
		ResolveBy time.Time   `json:"resolve_by"`
	}
	out := history.Click{Buyer: buyer, Quantity: quantity, Edge: edge, Start: time.Now()}
	out.Status = c.ask(ctx, http.MethodPost, c.edges[edge]+"/seckill/"+c.sale.product, buyer, fmt.Sprintf(`{"quantity":%d}`, quantity), &said)
	out.End = time.Now()
	out.Code, out.OrderID, out.ResolveBy = said.Code, said.OrderID, said.ResolveBy
	return out
}

// fate asks what became of an order.
func (c *client) fate(ctx context.Context, edge int, buyer, id string) history.Told {
	var said struct {
		Status any          `json:"status"` // of a problem it is a number
		Reason order.Reason `json:"reason"`
	}
	out := history.Told{OrderID: id, Edge: edge, At: time.Now()}
	out.Status = c.ask(ctx, http.MethodGet, c.edges[edge]+"/seckill/"+c.sale.product+"/orders/"+id, buyer, "", &said)
	out.End = time.Now()
	if state, ok := said.Status.(string); ok && out.Status == http.StatusOK {
		out.State, out.Reason = order.State(state), said.Reason
	}
	return out
}
