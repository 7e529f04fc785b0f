package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/api"
)

func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON")
}

func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// columns prints aligned lines.
func (a *app) columns(print func(io.Writer)) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	print(w)
	return w.Flush()
}

func (a *app) printView(view activities.View, err error) error {
	if err != nil {
		return err
	}
	v := api.ActivityOf(view)
	if a.json {
		return a.printJSON(v)
	}
	return a.columns(func(w io.Writer) {
		fmt.Fprintf(w, "product\t%s\nactivity\t%s\n", v.ProductID, v.ID)
		if v.Title != "" {
			fmt.Fprintf(w, "title\t%s\n", v.Title)
		}
		fmt.Fprintf(w, "start\t%s\nend\t%s\n", v.Start.Format(time.RFC3339), v.End.Format(time.RFC3339))
		fmt.Fprintf(w, "units\t%d, %d a user\n", v.Total, v.Limit)
		if v.PayWindowSeconds > 0 {
			fmt.Fprintf(w, "pay window\t%s\n", time.Duration(v.PayWindowSeconds)*time.Second)
		}
		fmt.Fprintf(w, "state\t%s\nin SQL\t%s\n", v.Sale, stateOf(v))
		if r := v.Redis; r != nil {
			fmt.Fprintf(w, "in Redis\t%s, available %d, frozen %d, sold %d, outbox %d\n", r.State, r.Available, r.Frozen, r.Sold, r.Outbox)
		}
		fmt.Fprintf(w, "why\t%s\n", v.Why)
	})
}

// stateOf is SQL's word for people: archived is a closed one's last state.
func stateOf(v api.Activity) string {
	if v.ArchivedAt != nil {
		return "archived"
	}
	return v.State
}

func (a *app) printList(list []api.Activity) error {
	if a.json {
		return a.printJSON(map[string]any{"activities": list})
	}
	return a.columns(func(w io.Writer) {
		fmt.Fprintln(w, "PRODUCT\tACTIVITY\tSTATE\tTOTAL\tAVAILABLE\tFROZEN\tSOLD\tWHY")
		for _, v := range list {
			available, frozen, sold := "-", "-", "-"
			if r := v.Redis; r != nil {
				available, frozen, sold = fmt.Sprint(r.Available), fmt.Sprint(r.Frozen), fmt.Sprint(r.Sold)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", v.ProductID, v.ID, v.Sale, v.Total, available, frozen, sold, v.Why)
		}
	})
}

func (a *app) printAudit(audit api.Audit) error {
	var err error
	if a.json {
		err = a.printJSON(audit)
	} else {
		err = a.columns(func(w io.Writer) { writeAudit(w, audit) })
	}
	switch {
	case err != nil:
		return err
	case audit.Verdict == activities.Drifts:
		return fmt.Errorf("%w on %d units of product %s", errDrift, audit.Drift, audit.ProductID)
	case audit.Verdict == activities.Unknown:
		return fmt.Errorf("product %s: whether its stores agree is not known: %s", audit.ProductID, unknownBecause(audit))
	}
	return nil
}

func writeAudit(w io.Writer, audit api.Audit) {
	fmt.Fprintf(w, "product\t%s\nactivity\t%s\n", audit.ProductID, audit.ActivityID)
	fmt.Fprintf(w, "units\ttotal %d = available %d + frozen %d + sold %d\n", audit.Total, audit.Available, audit.Frozen, audit.Sold)
	fmt.Fprintf(w, "on the way\toutbox %d orders, queue and backends %d messages and orders\n", audit.Outbox, audit.Queued)
	for _, state := range slices.Sorted(maps.Keys(audit.Orders)) {
		fmt.Fprintf(w, "%s\t%d orders, %d units\n", state, audit.Orders[state], audit.Units[state])
	}
	if !audit.Known {
		fmt.Fprintln(w, "note\tRedis has nothing of this activity")
	}
	switch {
	case audit.Verdict == activities.Unknown:
		fmt.Fprintf(w, "drift\tnot known: %s\n", unknownBecause(audit))
	case !audit.QueueKnown:
		fmt.Fprintf(w, "drift\t%d or more: the broker does not answer\n", audit.Drift)
	default:
		fmt.Fprintf(w, "drift\t%d\n", audit.Drift)
	}
}

func unknownBecause(audit api.Audit) string {
	if !audit.QueueKnown {
		return "the broker does not answer what is on its way"
	}
	return "the sale is too busy for one view; ask again"
}
