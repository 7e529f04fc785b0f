package main

import (
	"fmt"
	"io"
	"time"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/dead"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

func (a *app) printOrder(o api.OrderShown) error {
	if a.json {
		return a.printJSON(o)
	}
	return a.columns(func(w io.Writer) {
		writeOrder(w, o.Order)
		for _, p := range o.Payments {
			writePayment(w, p)
		}
	})
}

func (a *app) printPaid(m store.Moved) error {
	if err := refusedMove(m, order.Paid); err != nil {
		return err
	}
	paid := api.PaidOf(m)
	if a.json {
		return a.printJSON(paid)
	}
	return a.columns(func(w io.Writer) {
		writeOrder(w, paid.Order)
		writePayment(w, paid.Payment)
		if paid.Outcome == string(store.RefundDue) {
			fmt.Fprintf(w, "to do\tthe order is not paid by it: give the money back, then seckilld refund done %s\n", paid.Payment.ID)
		}
	})
}

func (a *app) printCancelled(m store.Moved) error {
	if err := refusedMove(m, order.Cancelled); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(api.Cancelled{Repeat: m.Repeat, Order: api.OrderOf(m.Order)})
	}
	return a.columns(func(w io.Writer) { writeOrder(w, api.OrderOf(m.Order)) })
}

func (a *app) printPayment(p api.Payment) error {
	if a.json {
		return a.printJSON(p)
	}
	return a.columns(func(w io.Writer) { writePayment(w, p) })
}

func (a *app) printRefunds(r api.Refunds) error {
	if a.json {
		return a.printJSON(r)
	}
	if r.Total == 0 {
		fmt.Fprintln(a.stdout, "no refund is due")
		return nil
	}
	err := a.columns(func(w io.Writer) {
		fmt.Fprintln(w, "PAYMENT\tORDER\tACTIVITY\tPAID AT")
		for _, p := range r.Refunds {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.ID, p.OrderID, p.ActivityID, p.At.Format(time.RFC3339))
		}
	})
	if more := r.Total - int64(len(r.Refunds)); err == nil && more > 0 {
		fmt.Fprintf(a.stdout, "and %d more; --limit lists up to %d\n", more, maxListed)
	}
	return err
}

func writeOrder(w io.Writer, o api.Order) {
	fmt.Fprintf(w, "order\t%s\nproduct\t%s\nactivity\t%s\nuser\t%s\nunits\t%d\n", o.ID, o.ProductID, o.ActivityID, dead.Escape(o.UserID), o.Quantity)
	state := o.State
	if o.Reason != "" {
		state += ": " + o.Reason
	}
	fmt.Fprintf(w, "state\t%s, since %s\n", state, o.UpdatedAt.Format(time.RFC3339))
	if o.Due != nil && o.State == string(order.Created) {
		fmt.Fprintf(w, "to be paid by\t%s\n", o.Due.Format(time.RFC3339))
	}
}

func writePayment(w io.Writer, p api.Payment) {
	fmt.Fprintf(w, "payment\t%s of %s, %s", p.ID, p.At.Format(time.RFC3339), p.Outcome)
	if p.RefundedAt != nil {
		fmt.Fprintf(w, " at %s", p.RefundedAt.Format(time.RFC3339))
	}
	fmt.Fprintln(w)
}
