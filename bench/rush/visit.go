package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// visit looks at the product's page once, so that a wrong address is found
// before a thousand buyers are sent there. limit is the units a buyer may have,
// 0 if the edge cannot say now.
func (c *crowd) visit(ctx context.Context) (limit int, err error) {
	client := c.client(0)
	defer client.CloseIdleConnections()
	status, header, body, err := c.ask(ctx, client, http.MethodGet, 0, "", "seckill", c.product)
	if err != nil {
		return 0, fmt.Errorf("nothing answers at --url %s: %w; start an edge there, or name another address", c.edge, err)
	}
	var page struct {
		Product string `json:"product_id"`
		State   string `json:"state"`
		Limit   int    `json:"limit"`
		Type    string `json:"type"` // of a refusal
	}
	readable := json.Unmarshal(body, &page) == nil
	refusal := readable && strings.HasPrefix(page.Type, refusalPrefix)
	switch {
	case readable && status == http.StatusOK && page.Product == c.product && page.State != "":
		return page.Limit, nil
	case refusal && status == http.StatusNotFound:
		return 0, fmt.Errorf("the edge at --url %s has no product %s: create and preheat an activity, or name another --product", c.edge, c.product)
	case refusal:
		return 0, nil // an edge, if not one that sells now
	}
	return 0, fmt.Errorf("--url %s does not serve the edge: GET %s answers %d and %q, not the activity's JSON; "+
		"name the site as its Caddyfile does, host name and scheme too (SECKILL_SITE)",
		c.edge, c.edge.JoinPath("seckill", c.product), status, header.Get("Content-Type"))
}

// refusalPrefix begins the type of every refusal of an edge.
const refusalPrefix = "urn:seckill:"
