-- +goose Up
-- The same as in MySQL; see there for the reasons.
ALTER TABLE orders ADD COLUMN due_ms INTEGER NULL;

CREATE INDEX orders_due ON orders (state, due_ms);

CREATE TABLE payments (
    id          TEXT    NOT NULL PRIMARY KEY CHECK (length(id) <= 128),
    order_id    TEXT    NOT NULL CHECK (length(order_id) <= 26),
    activity_id TEXT    NOT NULL CHECK (length(activity_id) <= 64),
    outcome     TEXT    NOT NULL CHECK (length(outcome) <= 16),
    at_ms       INTEGER NOT NULL,
    refunded_ms INTEGER NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX payments_order ON payments (order_id);

CREATE INDEX payments_outcome ON payments (outcome, at_ms);
