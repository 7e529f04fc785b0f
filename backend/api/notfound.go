package api

import (
	"errors"
	"fmt"

	"github.com/seckill-edge/seckill/backend/store"
)

// NoOrder words an error about an order that is not stored, for whoever asked for it
// by the API or by a command; other errors stay as they are.
func NoOrder(id string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.None(fmt.Sprintf("order %s is not stored: one is within moments of its 202, ask again then; else compare the id", id))
}

// NoPayment does the same for a payment that nobody has reported.
func NoPayment(reference string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.None(fmt.Sprintf("payment %q was never reported: compare the reference with those of seckilld refund list (GET /api/refunds)", reference))
}
