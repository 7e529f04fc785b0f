package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seckill-edge/seckill/lua"
)

// Why it proves nothing that Redis does not have an order.
var (
	// errForgotten: Redis may have lost it, and a backend brings back what there was.
	errForgotten = errors.New("redis may have forgotten it")
	// errGone: the same, and no backend brings it back: the activity is closed, or Redis
	// has none.
	errGone = errors.New("redis may have forgotten it for good")
)

// recordAnswer is what Redis has of one buyer, and of one of their orders.
type recordAnswer struct {
	text string      // the record, empty if there is none
	note lua.Refusal // what is noted of the order, if the record does not have it
	err  error       // errForgotten or errGone: neither has the order, which proves nothing
}

// readBatch reads up to readMax buyers' records, and what is noted of those of their
// orders that the records do not have. An empty order is none. A buyer whose order is in
// their record costs nothing more than the record.
func (g *Gate) readBatch(product string, users, orders []string) ([]recordAnswer, error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.callTimeout)
	defer cancel()
	g.stats.reads.Add(1)
	read, err := g.readRecords(ctx, product, users, orders)
	if err != nil {
		g.stats.readErrors.Add(1)
	}
	return read, err
}

func (g *Gate) readRecords(ctx context.Context, product string, users, orders []string) ([]recordAnswer, error) {
	epoch := g.epochOf(product)
	texts, err := lua.RecordTexts(ctx, g.deps.Redis, product, users)
	if err != nil {
		return nil, err
	}
	read := make([]recordAnswer, len(users))
	var missing []string
	var places []int
	for i, id := range orders {
		read[i].text = texts[i]
		if id != "" && !strings.Contains(texts[i], ":"+id+":") {
			missing, places = append(missing, id), append(places, i)
		}
	}
	if len(missing) == 0 {
		return read, nil
	}
	notes, err := lua.RefusalsOf(ctx, g.deps.Redis, product, missing)
	if err != nil {
		return nil, err
	}
	nothing := places[:0]
	for i, place := range places {
		read[place].note = notes[i]
		instead := notes[i].Instead
		if notes[i].OrderID == "" || instead != "" && !strings.Contains(texts[place], ":"+instead+":") {
			nothing = append(nothing, place)
		}
	}
	if len(nothing) == 0 {
		return read, nil
	}
	forgotten := g.mayHaveForgotten(ctx, product, epoch)
	for _, place := range nothing {
		read[place].err = forgotten
	}
	return read, nil
}

// epochOf is the epoch in which this edge sells a product; 0 if it does not.
func (g *Gate) epochOf(product string) int64 {
	b := &g.sales
	b.mu.RLock()
	s := b.sales[product]
	b.mu.RUnlock()
	if s == nil || s.closed() {
		return 0
	}
	return s.view.Load().Epoch
}

// mayHaveForgotten is nil if what Redis did not have a moment ago was not there: it
// asks Redis itself, since an edge hears of a loss only with its next look at the
// sale. Between two proofs of a stock nothing is forgotten, and each proof begins an
// epoch; so nothing was forgotten since the edge knew the epoch if Redis still has it.
func (g *Gate) mayHaveForgotten(ctx context.Context, product string, epoch int64) error {
	now, there, err := lua.Audit(ctx, g.deps.Redis, product)
	switch {
	case err != nil:
		return fmt.Errorf("asking whether Redis may have forgotten an order: %w", err)
	case epoch == 0 && !there, there && now.Forgetful() && now.State == lua.Closed:
		return errGone
	case there && now.Forgetful(), epoch != 0 && (!there || now.Epoch != epoch):
		return errForgotten
	}
	return nil
}
