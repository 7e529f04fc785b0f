package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/store"
)

const (
	product = "1001"
	title   = "Mechanical keyboard, limited edition"
	// saleTime is how long the sample activity is open.
	saleTime = 24 * time.Hour
)

// sample brings the sample activity on sale: the one that the database kept, if it
// is not over, else a new one. Nothing of value is sold here, so any Redis is good
// enough.
func sample(ctx context.Context, all *activities.Service, s settings, log *slog.Logger) (activities.View, error) {
	kept, err := all.Show(ctx, product)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return create(ctx, all, s)
	case err != nil:
		return kept, fmt.Errorf("looking for the sample activity: %w", err)
	case kept.State == store.Closed:
		return create(ctx, all, s)
	case !time.Now().Before(kept.End):
		log.Warn("the kept activity is over; it is closed and a new one is made", "activity", kept.ID)
		return replace(ctx, all, s)
	case kept.State == store.Scheduled:
		return preheat(ctx, all)
	}
	// The embedded Redis begins empty: the backend makes its stock from SQL again.
	err = until(ctx, func() error {
		v, err := all.Show(ctx, product)
		if err == nil && (v.Snapshot == nil || !v.Snapshot.Proven() && v.State == store.Open) {
			err = fmt.Errorf("the stock of the kept activity is not proven: %s", v.Why)
		}
		return err
	})
	if err != nil {
		return kept, err
	}
	return open(ctx, all)
}

func replace(ctx context.Context, all *activities.Service, s settings) (activities.View, error) {
	if _, err := all.Close(ctx, product); err != nil {
		return activities.View{}, err
	}
	return create(ctx, all, s)
}

func create(ctx context.Context, all *activities.Service, s settings) (activities.View, error) {
	// A few seconds back: the sale starts by Redis's clock.
	start := time.Now().UTC().Add(-10 * time.Second)
	_, err := all.Create(ctx, activities.Draft{
		ProductID: product, Title: title, Total: s.units, Limit: s.limit, PayWindow: s.payWindow,
		Start: start.Format(time.RFC3339), End: start.Add(saleTime).Format(time.RFC3339), Manual: true,
	})
	if err != nil {
		return activities.View{}, err
	}
	return preheat(ctx, all)
}

func preheat(ctx context.Context, all *activities.Service) (activities.View, error) {
	if _, err := all.Preheat(ctx, product, activities.AcceptRedisRisk); err != nil {
		return activities.View{}, err
	}
	return open(ctx, all)
}

func open(ctx context.Context, all *activities.Service) (activities.View, error) {
	v, err := all.Open(ctx, product, activities.AcceptRedisRisk)
	if err != nil {
		return v, fmt.Errorf("opening the sample activity: %w", err)
	}
	return v, nil
}

// sells asks the edge whether it sells the product, or has sold it out.
func sells(ctx context.Context, edge string) error {
	address := "http://" + edge + "/seckill/" + product
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the edge: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("reading the edge's answer: %w", err)
	}
	var page struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(body, &page); err != nil || (page.State != "open" && page.State != "sold_out") {
		return fmt.Errorf("the edge does not sell product %s: it answers %s, %.300s", product, resp.Status, body)
	}
	return nil
}
