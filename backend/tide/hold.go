package tide

import (
	"context"
	"errors"

	"github.com/seckill-edge/seckill/lua"
)

// hold shuts every sale that Redis has, and has its stock proven before it opens
// again. One that cannot be shut keeps nobody from shutting the others.
func (w *Watch) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	products, err := lua.Products(ctx, w.Redis)
	errs := []error{err}
	for _, product := range products {
		errs = append(errs, w.holdOne(ctx, product))
	}
	return errors.Join(errs...)
}

func (w *Watch) holdOne(ctx context.Context, product string) error {
	s, there, err := lua.Audit(ctx, w.Redis, product)
	if err != nil || !there || s.State == lua.Closed || s.RunID == lua.Unproven && s.State == lua.OnHold {
		return err
	}
	if s.State == lua.OnHold && s.RunID == "" {
		return nil // preheated and never opened
	}
	if _, _, err = lua.Hold(ctx, w.Redis, s.Activity, ""); err != nil {
		// Its fields cannot be read: what is damaged sells nothing, and this is for sure.
		_, _, err = lua.SetState(ctx, w.Redis, product, s.ID, lua.OnHold)
	}
	if errors.Is(err, lua.ErrDamaged) || errors.Is(err, lua.ErrClosed) || errors.Is(err, lua.ErrOtherActivity) {
		return nil
	}
	if err == nil {
		w.Log.Warn("tide: sale held", "product", product, "activity", s.ID)
	}
	return err
}
