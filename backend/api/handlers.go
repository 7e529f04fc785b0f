package api

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seckill-edge/seckill/backend/activities"
	"github.com/seckill-edge/seckill/backend/reconcile"
	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/internal/order"
)

type handlers struct{ Deps }

type (
	none struct{}

	byProduct struct {
		ProductID string `path:"product_id" maxLength:"64"`
	}

	startInput struct {
		ProductID       string `path:"product_id" maxLength:"64"`
		AcceptRedisRisk bool   `query:"accept_redis_risk" doc:"Go on though Redis evicts keys, does not persist or is too small. For development."`
	}

	createInput struct {
		Body struct {
			ID               string `json:"id,omitempty" maxLength:"64" doc:"Made if absent."`
			ProductID        string `json:"product_id" minLength:"1" maxLength:"64"`
			Title            string `json:"title,omitempty" maxLength:"255" doc:"In characters, without those that are not seen, such as U+202E."`
			Start            string `json:"start" format:"date-time" doc:"RFC 3339 with a zone."`
			End              string `json:"end" format:"date-time"`
			Total            int64  `json:"total" minimum:"1" maximum:"1000000000" doc:"Units to sell."`
			Limit            int    `json:"limit,omitempty" minimum:"1" maximum:"999" default:"1" doc:"Units per user."`
			PayWindowSeconds int64  `json:"pay_window_seconds,omitempty" minimum:"0" maximum:"604800" doc:"0: no payment stage."`
			Manual           bool   `json:"manual,omitempty" doc:"Leave preheat and open to the operator; no backend does them."`
		}
	}

	stockInput struct {
		ProductID string `path:"product_id" maxLength:"64"`
		Body      struct {
			Add      int64 `json:"add,omitempty" minimum:"1" maximum:"1000000000" doc:"Units to add."`
			Withdraw int64 `json:"withdraw,omitempty" minimum:"1" maximum:"1000000000" doc:"Units to withdraw; only available ones can be."`
			IfTotal  int64 `json:"if_total,omitempty" minimum:"1" maximum:"1000000000" doc:"Refuse unless the total is this one; so a repeat does not change it twice."`
		}
	}

	activityOutput struct{ Body Activity }

	listOutput struct {
		Body struct {
			Activities []Activity `json:"activities"`
		}
	}

	auditOutput     struct{ Body Audit }
	reconcileOutput struct{ Body reconcile.Report }

	reconcileInput struct {
		ProductID string `path:"product_id" maxLength:"64"`
		DryRun    bool   `query:"dry_run" doc:"Find only, mend nothing."`
	}
	orderOutput struct{ Body OrderShown }
)

func (in *startInput) options() []activities.Option {
	if in.AcceptRedisRisk {
		return []activities.Option{activities.AcceptRedisRisk}
	}
	return nil
}

func (h *handlers) list(ctx context.Context, _ *none) (*listOutput, error) {
	views, err := h.Activities.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Activities = ActivitiesOf(views)
	return out, nil
}

func (h *handlers) create(ctx context.Context, in *createInput) (*activityOutput, error) {
	b := in.Body
	_, err := h.Activities.Create(ctx, activities.Draft{
		ID:        b.ID,
		ProductID: b.ProductID,
		Title:     b.Title,
		Start:     b.Start,
		End:       b.End,
		Total:     b.Total,
		Limit:     b.Limit,
		PayWindow: time.Duration(b.PayWindowSeconds) * time.Second,
		Manual:    b.Manual,
	})
	if err != nil {
		return nil, err
	}
	return h.show(ctx, &byProduct{b.ProductID})
}

func (h *handlers) show(ctx context.Context, in *byProduct) (*activityOutput, error) {
	return shown(h.Activities.Show(ctx, in.ProductID))
}

func (h *handlers) preheat(ctx context.Context, in *startInput) (*activityOutput, error) {
	return shown(h.Activities.Preheat(ctx, in.ProductID, in.options()...))
}

func (h *handlers) open(ctx context.Context, in *startInput) (*activityOutput, error) {
	return shown(h.Activities.Open(ctx, in.ProductID, in.options()...))
}

func (h *handlers) hold(ctx context.Context, in *byProduct) (*activityOutput, error) {
	return shown(h.Activities.Hold(ctx, in.ProductID))
}

func (h *handlers) resume(ctx context.Context, in *startInput) (*activityOutput, error) {
	return shown(h.Activities.Resume(ctx, in.ProductID, in.options()...))
}

func (h *handlers) stock(ctx context.Context, in *stockInput) (*activityOutput, error) {
	return shown(h.Activities.ChangeStock(ctx, in.ProductID, activities.Change(in.Body)))
}

func (h *handlers) close(ctx context.Context, in *byProduct) (*activityOutput, error) {
	return shown(h.Activities.Close(ctx, in.ProductID))
}

func shown(view activities.View, err error) (*activityOutput, error) {
	if err != nil {
		return nil, err
	}
	return &activityOutput{ActivityOf(view)}, nil
}

func (h *handlers) audit(ctx context.Context, in *byProduct) (*auditOutput, error) {
	audit, err := h.Activities.Audit(ctx, in.ProductID)
	if err != nil {
		return nil, err
	}
	return &auditOutput{AuditOf(audit)}, nil
}

func (h *handlers) reconcile(ctx context.Context, in *reconcileInput) (*reconcileOutput, error) {
	report, err := h.Reconcile(ctx, in.ProductID, in.DryRun)
	if err != nil {
		return nil, err
	}
	return &reconcileOutput{report}, nil
}

func (h *handlers) order(ctx context.Context, in *struct {
	OrderID string `path:"order_id" maxLength:"26"`
},
) (*orderOutput, error) {
	if !order.ValidID(in.OrderID) {
		return nil, badOrderID()
	}
	stored, err := h.Store.Order(ctx, in.OrderID)
	if err != nil {
		return nil, NoOrder(in.OrderID, err)
	}
	payments, err := h.Store.Payments(ctx, in.OrderID)
	if err != nil {
		return nil, err
	}
	return &orderOutput{ShownOf(stored, payments)}, nil
}

// problem turns an error into the answer to the request of ctx, once. What the
// client did not cause is logged here and not told: errors of drivers carry
// addresses. A client that goes away cancels ctx and is no failure of a server:
// browsers do it whenever a page is left.
func (h *handlers) problem(ctx context.Context, err error) error {
	var invalid *activities.Invalid
	switch {
	case errors.As(err, &invalid):
		details := make([]error, len(invalid.Fields))
		for i, f := range invalid.Fields {
			details[i] = &huma.ErrorDetail{Message: f.Allowed, Location: "body." + f.Name, Value: f.Value}
		}
		return huma.Error422UnprocessableEntity(invalid.Error(), details...)
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrState), errors.Is(err, activities.ErrRefused):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, store.ErrBehind):
		return huma.Error503ServiceUnavailable(store.ErrBehind.Error())
	case errors.Is(err, activities.ErrHalf):
		h.Log.Error("api: request done by half", "error", err)
		return huma.Error503ServiceUnavailable("held in Redis, nothing is sold; the database could not be told: hold it again when it answers")
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		h.Log.Debug("api: the client has gone away before the answer", "error", err)
	} else {
		h.Log.Error("api: request failed", "error", err)
	}
	return huma.Error503ServiceUnavailable("a store cannot be asked now; /readyz names it, the log says more")
}
