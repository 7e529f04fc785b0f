package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// consoleTimeout bounds one call of the console.
const consoleTimeout = 10 * time.Second

// console is the backend's API.
type console struct {
	at     *url.URL
	token  string // bearer token; empty: none
	client *http.Client
}

// activity is what the backend says of the sale.
type activity struct {
	PayWindowSeconds int64    `json:"pay_window_seconds"`
	State            string   `json:"state"` // the operator's word
	Why              string   `json:"why"`
	Redis            *inRedis `json:"redis"`
}

type inRedis struct {
	State   string `json:"state"`
	Damaged bool   `json:"damaged"`
}

// unproven says that the sale is shut although the operator has it open: its
// stock is being proven, and figures mean little until it is.
func (a activity) unproven() bool {
	return a.State == "open" && (a.Redis == nil || a.Redis.Damaged || a.Redis.State == "held")
}

// activity asks for the sale of a product.
func (c console) activity(ctx context.Context, product string) (a activity, err error) {
	return a, c.get(ctx, &a, "api", "activities", product)
}

// look asks once for the audit of a product.
func (c console) look(ctx context.Context, product string) (a audit, err error) {
	return a, c.get(ctx, &a, "api", "activities", product, "audit")
}

// get reads a document of the console into to.
func (c console) get(ctx context.Context, to any, path ...string) error {
	status, body, err := c.call(ctx, http.MethodGet, "", path...)
	address := c.at.JoinPath(path...)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the console answers %d %s to GET %s: %s", status, http.StatusText(status), address, reason(body))
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("the answer to GET %s is not the expected JSON: %w", address, err)
	}
	return nil
}

// reason is what a backend says of a refusal. Whoever says nothing is none.
func reason(body []byte) string {
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return "that is no backend; name the address of seckilld serve, or of the console that standalone prints"
}

// call sends one request to the console.
func (c console) call(ctx context.Context, method, body string, path ...string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.at.JoinPath(path...).String(), bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, fmt.Errorf("making a request: %w", err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the console: %w", err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the console's answer: %w", err)
	}
	return resp.StatusCode, answer, nil
}
