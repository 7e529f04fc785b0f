package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/backend/compare"
	"github.com/seckill-edge/seckill/backend/fence"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// maxDifferences bounds what one inspection remembers between its looks.
const maxDifferences = 50_000

// sighting is what one look at the whole activity has found.
type sighting struct {
	before, after lua.Snapshot
	there         bool
	idle          bool
	result        compare.Result
	differences   []compare.Difference
	beyond        int // differences that were not remembered
	strangers     []compare.Difference
}

// still says that Redis has not moved while it was looked at.
func (s *sighting) still() bool {
	a, b := s.before, s.after
	return a.Available == b.Available && a.Frozen == b.Frozen && a.Sold == b.Sold && a.Outbox == b.Outbox &&
		a.Epoch == b.Epoch && a.Users == b.Users && a.Changes == b.Changes
}

// Inspect compares an activity and changes nothing. What it finds it looks at a
// second time, two seconds later, and reports what is still there; while orders
// are on their way it says nothing of those that may still arrive.
func (r *Reconciler) Inspect(ctx context.Context, a store.Activity) (Report, error) {
	report := Report{
		ActivityID: a.ID, ProductID: a.ProductID, At: time.Now().UTC(), Findings: []Finding{},
		Counts: map[compare.Kind]int{}, Mended: map[compare.Kind]int{},
	}
	if err := r.keys(ctx, a, &report); err != nil {
		return report, err
	}
	if report.unproven {
		words, err := r.proving(ctx, a.ProductID)
		if err != nil {
			return report, err
		}
		if words != "" {
			report.Note = "a backend is proving it now; wait and ask again: " + words
		}
	}
	first, err := r.look(ctx, a)
	if err != nil {
		return report, err
	}
	report.note(first)
	if !first.there {
		return report, nil
	}
	drifts := drift(first)
	if len(first.differences)+len(first.strangers) > 0 || drifts != nil {
		if err := wait(ctx, secondLook); err != nil {
			return report, err
		}
		if err := r.lookAgain(ctx, a, &report, first, drifts); err != nil {
			return report, err
		}
	}
	return report, r.dead(ctx, a, &report)
}

// proving says where somebody's proof of the product's stock stands; empty if nobody
// is at it.
func (r *Reconciler) proving(ctx context.Context, product string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lua.FenceNote(ctx, r.Redis, product)
}

func (r *Report) note(s sighting) {
	r.Idle = s.idle
	r.Buyers, r.Entries, r.Live, r.Rows, r.OnTheWay = s.result.Buyers, s.result.Entries, s.result.Live, s.result.Rows, s.result.OnTheWay
}

// look goes through the whole activity once.
func (r *Reconciler) look(ctx context.Context, a store.Activity) (s sighting, err error) {
	if s.before, s.there, err = r.snapshot(ctx, a.ProductID); err != nil || !s.there || s.before.ID != a.ID {
		s.there = false
		return s, err
	}
	if a, err = r.Store.Activity(ctx, a.ID); err != nil {
		return s, err
	}
	a.Total = compare.Total(a, s.before)
	if s.idle, err = r.idle(ctx); err != nil {
		return s, err
	}
	// A hash that is something else cannot be gone through; keys has said so.
	types, err := r.types(ctx, a.ProductID)
	if err != nil {
		return s, err
	}
	k := lua.KeysOf(a.ProductID)
	if !hashOrNone(types[k.Users]) || !hashOrNone(types[k.Outbox]) {
		s.there = false
		return s, nil
	}
	s.result, err = compare.Sides{Redis: r.Redis, Store: r.Store}.Run(ctx, compare.Look{
		Activity: a, Patience: r.Patience,
		Found: func(_ context.Context, found []compare.Difference) error {
			for _, d := range found {
				switch {
				case d.Kind == compare.Forgotten:
				case len(s.differences) >= maxDifferences:
					s.beyond++
				default:
					s.differences = append(s.differences, d)
				}
			}
			return nil
		},
	})
	if err != nil {
		return s, err
	}
	if s.strangers, err = r.strangers(ctx, a.ProductID); err != nil {
		return s, err
	}
	s.after, _, err = r.snapshot(ctx, a.ProductID)
	return s, err
}

// lookAgain reports what is still there.
func (r *Reconciler) lookAgain(ctx context.Context, a store.Activity, report *Report, first sighting, drifts []Finding) error {
	idle, err := r.idle(ctx)
	if err != nil {
		return err
	}
	report.Idle = first.idle && idle
	differences, err := compare.Sides{Redis: r.Redis, Store: r.Store}.Again(ctx, a, first.differences)
	if err != nil {
		return err
	}
	for _, d := range differences {
		if d.Kind == compare.LostAfterPublish && !report.Idle {
			report.OnTheWay++
			continue
		}
		report.add(findingOf(a, d))
	}
	strangers, err := r.strangers(ctx, a.ProductID)
	if err != nil {
		return err
	}
	for _, d := range strangers {
		if seen(first.strangers, d.OrderID) {
			report.add(Finding{
				Kind: d.Kind, OrderID: d.OrderID, UserID: d.UserID, What: "the outbox names an order that its buyer does not have", difference: d,
			})
		}
	}
	if first.beyond > 0 {
		report.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d more differences were not looked at again", report.Note, first.beyond), "; ")
	}
	return r.driftAgain(ctx, a, report, drifts)
}

// driftAgain believes counters to be wrong if they are wrong twice, in the same
// way, while nothing moved.
func (r *Reconciler) driftAgain(ctx context.Context, a store.Activity, report *Report, drifts []Finding) error {
	if drifts == nil {
		return nil
	}
	second, err := r.look(ctx, a)
	if err != nil {
		return err
	}
	for i, f := range drift(second) {
		if i < len(drifts) && f.What == drifts[i].What && *f.Figures == *drifts[i].Figures {
			report.add(f)
		}
	}
	return nil
}

// drift compares the counters with the sum of the records; nil if they agree, or
// if something moved meanwhile.
func drift(s sighting) []Finding {
	if !s.there || !s.still() || s.before.Damaged || damagedRecords(s.differences) {
		return nil
	}
	counters := []struct {
		name       string
		has, right int64
	}{
		{"available", s.before.Available, s.result.Units.Available},
		{"frozen", s.before.Frozen, s.result.Units.Frozen},
		{"sold", s.before.Sold, s.result.Units.Sold},
	}
	kind := compare.CounterDrift
	if s.before.Available > s.result.Units.Available {
		kind = compare.ReleasedTwice
	}
	var found []Finding
	for _, c := range counters {
		if c.has != c.right {
			found = append(found, Finding{
				Kind: kind, What: c.name + " units",
				Figures: &Figure{Redis: strconv.FormatInt(c.has, 10), Right: strconv.FormatInt(c.right, 10)},
			})
		}
	}
	return found
}

func damagedRecords(differences []compare.Difference) bool {
	for _, d := range differences {
		if d.Kind == compare.DamagedRecord {
			return true
		}
	}
	return false
}

func seen(differences []compare.Difference, id string) bool {
	for _, d := range differences {
		if d.OrderID == id {
			return true
		}
	}
	return false
}

func findingOf(a store.Activity, d compare.Difference) Finding {
	redis, sql := "no such order", "none"
	if d.Entry != nil {
		redis = fmt.Sprintf("it as %s, %s", d.Entry.Mark, units(d.Entry.Quantity))
	}
	if d.Row != nil {
		sql = fmt.Sprintf("it as %s, %s", d.Row.State, units(d.Row.Quantity))
		if d.Row.UserID != d.UserID {
			sql += ", another buyer's"
		}
		if d.Row.ActivityID != a.ID {
			sql += ", activity " + d.Row.ActivityID
		}
	}
	what := "Redis has " + redis + "; SQL has " + sql
	if d.Kind == compare.SettledNotStored {
		what += ": the database has forgotten it, `seckilld recover` takes it back"
	}
	if d.Kind == compare.DamagedRecord {
		what = "the buyer's record cannot be read"
	}
	return Finding{Kind: d.Kind, OrderID: d.OrderID, UserID: d.UserID, What: what, difference: d}
}

func units(n int) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}

// why says, as the fence does, whether the stock must be proven.
func why(a store.Activity, s lua.Snapshot, there bool) string {
	words, _ := fence.Needs(a, s, there)
	return words
}
