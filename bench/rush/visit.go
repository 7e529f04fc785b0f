package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// visit looks at the product's page once, so that a wrong address is found
// before a thousand buyers are sent there, and asks for a ticket if everybody is to
// have one. limit is the units a buyer may have, 0 if the edge cannot say now.
func (c *crowd) visit(ctx context.Context) (limit int, err error) {
	client := c.client(0)
	defer client.CloseIdleConnections()
	status, header, body, err := c.ask(ctx, client, http.MethodGet, 0, nil, c.product)
	if err != nil {
		return 0, fmt.Errorf("nothing answers at --url %s: %w; start an edge there, or name another address", c.edge, err)
	}
	var page struct {
		Product string `json:"product_id"`
		State   string `json:"state"`
		Limit   int    `json:"limit"`
		Type    string `json:"type"` // of a refusal
		Code    int    `json:"code"`
		Detail  string `json:"detail"`
	}
	readable := json.Unmarshal(body, &page) == nil
	refusal := readable && strings.HasPrefix(page.Type, refusalPrefix)
	switch {
	case readable && status == http.StatusOK && page.Product == c.product && page.State != "":
		return page.Limit, c.visitTickets(ctx, client)
	case refusal && page.Code == noProduct:
		return 0, fmt.Errorf("the edge at --url %s has no product %s: create and preheat an activity, or name another --product", c.edge, c.product)
	case refusal && status == http.StatusUnauthorized && c.tokens != nil:
		return 0, fmt.Errorf("the edge at --url %s does not take the tokens (%s): --token-secret-file, --token-key-id, --issuer and --audience "+
			"must be what its seckill_jwt has; its debug log says what is wrong", c.edge, page.Detail)
	case refusal && status != http.StatusNotFound:
		return 0, nil // an edge, if not one that sells now
	}
	return 0, fmt.Errorf("--url %s does not serve the edge: GET %s answers %d and %q, not the activity's JSON; "+
		"name the site as its Caddyfile does, host name and scheme too (SECKILL_SITE), and its path_prefix unless that is /seckill",
		c.edge, c.edge.JoinPath(c.product), status, header.Get("Content-Type"))
}

// visitTickets finds out whether the edge gives tickets at all. One that gives none
// now, as before the start, says why when it is asked.
func (c *crowd) visitTickets(ctx context.Context, client *http.Client) error {
	if !c.tickets {
		return nil
	}
	status, _, _, err := c.ask(ctx, client, http.MethodPost, 0, nil, c.product, "ticket")
	if err == nil && status == http.StatusNotFound {
		return fmt.Errorf("this edge gives no tickets (--url %s): leave --ticket out, or give its config ticket_keys (SECKILL_TICKET_KEYS)", c.edge)
	}
	return err
}

const (
	// refusalPrefix begins the type of every refusal of an edge.
	refusalPrefix = "urn:seckill:"
	// noProduct is the code of one that does not know the product.
	noProduct = -5
)
