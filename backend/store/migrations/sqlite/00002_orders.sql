-- +goose Up
-- The same table as in MySQL; see there for the reasons.
CREATE TABLE orders (
    id          TEXT    NOT NULL PRIMARY KEY CHECK (length(id) <= 26),
    activity_id TEXT    NOT NULL CHECK (length(activity_id) <= 64),
    product_id  TEXT    NOT NULL CHECK (length(product_id) <= 64),
    user_id     TEXT    NOT NULL CHECK (length(CAST(user_id AS BLOB)) <= 128),
    quantity    INTEGER NOT NULL CHECK (quantity BETWEEN -32768 AND 32767),
    claim       INTEGER NULL CHECK (claim BETWEEN -32768 AND 32767),
    state       TEXT    NOT NULL CHECK (length(state) <= 16),
    reason      TEXT    NOT NULL CHECK (length(reason) <= 32),
    reserved_ms INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    updated_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX orders_claim ON orders (activity_id, user_id, claim);

CREATE INDEX orders_state ON orders (activity_id, state, quantity);
