package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// awaitReady waits until every program says that it is ready: what it says of the
// round before this one, such as of a broker that it has not reached again yet, is no
// statement about this one.
func (f *Field) awaitReady(ctx context.Context) error {
	for _, e := range f.Edges {
		if err := awaitClaim(ctx, e.Admin+"/seckill/status", edgeStatus); err != nil {
			return err
		}
	}
	for _, b := range f.Backends {
		if err := awaitClaim(ctx, b.URL+"/readyz", readyz); err != nil {
			return err
		}
	}
	return nil
}

// awaitClaim asks until the answer says that its program is ready.
func awaitClaim(ctx context.Context, url string, read reading) error {
	for {
		said, err := ask(ctx, http.DefaultClient, url, read)
		if len(said) == 1 && said[0].Claim == history.Ready {
			return nil
		}
		if wait := pause(ctx, 50*time.Millisecond); wait != nil {
			return fmt.Errorf("%s is not ready before the round: %v: %w", url, said, err)
		}
	}
}

// ask makes claims of what a program answers.
func ask(ctx context.Context, client *http.Client, url string, read reading) ([]history.Statement, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return read(resp.StatusCode, body), nil
}
