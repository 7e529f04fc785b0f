package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/store"
)

func newRefund(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "refund",
		Short: "Look after payments whose money is due back",
		Long: `A payment that comes after its order was cancelled or has expired, or that is the
second one, never revives the order. It is kept as refund_due until somebody has
given the money back and says so.`,
		Example: `  seckilld refund list
  seckilld refund done pi_3Mt42`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRefundList(a), newRefundDone(a))
	return c
}

func newRefundList(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List payments whose money is due back, the oldest first",
		Example: `  seckilld refund list
  seckilld refund list --limit 1000 --json`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return fmt.Errorf("%w: --limit %d: must be 1 to %d", errUsage, limit, maxListed)
			}
			return a.withStore(c.Context(), func(ctx context.Context, s *store.Store) error {
				due, total, err := s.Refunds(ctx, limit)
				if err != nil {
					return err
				}
				return a.printRefunds(api.Refunds{Total: total, Refunds: api.PaymentsOf(due)})
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 100, "payments to list, 1 to 1000")
	a.jsonFlag(c)
	return c
}

func newRefundDone(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "done REFERENCE",
		Short: "Note that the money of a payment was given back",
		Example: `  seckilld refund done pi_3Mt42
  seckilld refund done pi_3Mt42 --json`,
		Args: one("REFERENCE"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(ctx context.Context, s *store.Store) error {
				p, err := s.RefundDone(ctx, args[0])
				if err != nil {
					return api.NoPayment(args[0], err)
				}
				return a.printPayment(api.PaymentOf(p))
			})
		},
	}
	a.jsonFlag(c)
	return c
}
