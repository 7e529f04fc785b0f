package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/metrics"
	"github.com/seckill-edge/seckill/backend/pay"
	"github.com/seckill-edge/seckill/backend/settle"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

const (
	// payWithin bounds a command on orders and refunds.
	payWithin = time.Minute
	// tellWithin is how long one waits for Redis; the reconciler tells it else.
	tellWithin = 5 * time.Second
)

func newOrder(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "order",
		Short: "Show, pay and cancel orders",
		Long: `An order of an activity with a pay window is created, and then paid, cancelled or
expired, whatever comes first and for good. These commands do what the payment
service does by the API. An order that is not stored yet is not found.`,
		Example: `  seckilld order show 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld order cancel 01kb0c3v9t4z6q8w2x5y7a1d3f --reason fraud`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newOrderShow(a), newOrderPay(a), newOrderCancel(a))
	return c
}

func newOrderShow(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show ORDER",
		Short: "Show a stored order and its payments",
		Example: `  seckilld order show 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld order show 01kb0c3v9t4z6q8w2x5y7a1d3f --json`,
		Args: one("ORDER"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOrder(c.Context(), args[0], func(ctx context.Context, s *store.Store) error {
				o, err := s.Order(ctx, args[0])
				if err != nil {
					return err
				}
				payments, err := s.Payments(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printOrder(api.ShownOf(o, payments))
			})
		},
	}
	a.jsonFlag(c)
	return c
}

func newOrderPay(a *app) *cobra.Command {
	var payment string
	c := &cobra.Command{
		Use:   "pay ORDER --payment REFERENCE",
		Short: "Note a payment; one that comes too late is kept as refund_due",
		Long: `pay notes a payment, as the payment service does by the API. It exits with 0 once the
payment is noted, whatever it did to the order: the outcome says that, in the text and in
--json. applied: the order is paid. refund_due: the order had been paid, cancelled, expired
or rejected before and stays so; the money is to go back. refunded: it has gone back.
3 is a payment that is not noted: no such order, another order's payment, no payment stage.`,
		Example: `  seckilld order pay 01kb0c3v9t4z6q8w2x5y7a1d3f --payment pi_3Mt42
  seckilld order pay 01kb0c3v9t4z6q8w2x5y7a1d3f --payment pi_3Mt42 --json`,
		Args: one("ORDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if !order.ValidPayment(payment) {
				return fmt.Errorf("%w: --payment %q: must be the payment service's reference, 1 to %d visible ASCII characters", errUsage, payment, order.MaxPaymentBytes)
			}
			return a.withPay(c.Context(), args[0], func(ctx context.Context, s *pay.Service) error {
				m, err := s.Paid(ctx, args[0], payment)
				if err != nil {
					return err
				}
				return a.printPaid(m)
			})
		},
	}
	c.Flags().StringVar(&payment, "payment", "", "the payment service's `reference`; the same one again is the same payment (required)")
	a.jsonFlag(c)
	return c
}

func newOrderCancel(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "cancel ORDER",
		Short: "Cancel an unpaid order; its units are for sale again",
		Example: `  seckilld order cancel 01kb0c3v9t4z6q8w2x5y7a1d3f
  seckilld order cancel 01kb0c3v9t4z6q8w2x5y7a1d3f --reason changed_mind --json`,
		Args: one("ORDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if !order.ValidCancelReason(order.Reason(reason)) {
				return fmt.Errorf("%w: --reason %q: must be up to 32 of a-z 0-9 and _", errUsage, reason)
			}
			return a.withPay(c.Context(), args[0], func(ctx context.Context, s *pay.Service) error {
				m, err := s.Cancel(ctx, args[0], order.Reason(reason))
				if err != nil {
					return err
				}
				return a.printCancelled(m)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "a `word` for why, kept with the order: up to 32 of a-z 0-9 and _")
	a.jsonFlag(c)
	return c
}

// refusedMove is a move that lost, as a command says it.
func refusedMove(m store.Moved, to order.State) error {
	if words := api.Refusal(m, to); words != "" {
		return fmt.Errorf("%w: %s", activities.ErrRefused, words)
	}
	return nil
}

func checkOrderID(id string) error {
	if !order.ValidID(id) {
		return fmt.Errorf("%w: order %q: must be 26 of 0-9 a-z without i l o u", errUsage, id)
	}
	return nil
}

// withOrder opens the database for one command.
func (a *app) withOrder(ctx context.Context, id string, do func(context.Context, *store.Store) error) error {
	if err := checkOrderID(id); err != nil {
		return err
	}
	return api.NoOrder(id, a.withStore(ctx, do))
}

func (a *app) withStore(ctx context.Context, do func(context.Context, *store.Store) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, payWithin)
	defer cancel()
	log, err := a.log(slog.LevelWarn)
	if err != nil {
		return err
	}
	s, err := a.openStore(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := answers(ctx, s); err != nil {
		return err
	}
	return do(ctx, s)
}

// withPay opens the stores for one command that moves an order. A Redis that is
// away is warned of: SQL has moved, and a backend's reconciler tells it.
func (a *app) withPay(ctx context.Context, id string, do func(context.Context, *pay.Service) error) (err error) {
	if err := checkOrderID(id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, payWithin)
	defer cancel()
	log, err := a.log(slog.LevelWarn)
	if err != nil {
		return err
	}
	s, err := a.openAnswering(ctx, log, "seckilld-order")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m := metrics.New()
	settler := settle.New(s.redis, m, log)
	err = do(ctx, pay.New(pay.Deps{
		Store: s.store, Metrics: m, Log: log,
		Tell: func(ctx context.Context, moves []settle.Order) error {
			ctx, cancel := context.WithTimeout(ctx, tellWithin)
			defer cancel()
			_, err := settler.Now(ctx, moves)
			return err
		},
	}))
	return api.NoOrder(id, err)
}
