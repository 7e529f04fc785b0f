// Package order is the vocabulary that edge, queue and backend share: what an
// order is, how its id is made, which states it can have, what a message on the
// queue looks like, and what a client may send. It knows no technology and
// imports the standard library only.
package order

import "time"

// Order is one granted reservation on its way to a stored order. Redis grants
// it, the queue carries it and SQL stores it, all under the same id.
type Order struct {
	// ID is made by the edge (see NewID) before Redis is asked, so that a retry
	// after a lost reply is recognised.
	ID string
	// ActivityID names the sale; ProductID what it sells.
	ActivityID string
	ProductID  string
	// UserID is the buyer as the edge's authenticator named him.
	UserID string
	// Quantity is in units, 1 to MaxQuantity.
	Quantity int
	// Claim numbers the live orders of one buyer in one activity, from 1. Redis
	// gives the lowest number that is free; SQL's unique index
	// (activity, user, claim) is the second guard against ordering twice.
	Claim int
	// ReservedAt is when Redis granted it, by Redis's clock, in whole milliseconds.
	ReservedAt time.Time
}

// Bounds that hold everywhere: at the edge, in Lua, in SQL.
const (
	// MaxQuantity is the most units one order may hold.
	MaxQuantity = 999
	// MaxUnits is the most units one activity may sell.
	MaxUnits = 1_000_000_000
	// MaxUserBytes bounds a user id.
	MaxUserBytes = 128
	// MaxProductBytes bounds a product id and an activity id.
	MaxProductBytes = 64
	// MaxPaymentBytes bounds the reference of a payment.
	MaxPaymentBytes = 128
)
