-- +goose Up
-- due_ms is when an order that waits for its payment expires; NULL where there is
-- no payment stage. The scanner reads created orders by it. One statement adds
-- both, if they are not there: MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'due_ms');

SET @statement = IF(@missing, 'ALTER TABLE orders ADD COLUMN due_ms BIGINT NULL, ADD KEY orders_due (state, due_ms)', 'DO 0');

PREPARE change_orders FROM @statement;

EXECUTE change_orders;

DEALLOCATE PREPARE change_orders;

-- A payment is kept for ever, under the payment service's reference: a repeat is
-- recognised by it. outcome is applied, refund_due or refunded.
CREATE TABLE IF NOT EXISTS payments (
    id          VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id    CHAR(26)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    activity_id VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    outcome     VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    at_ms       BIGINT       NOT NULL,
    refunded_ms BIGINT       NULL,
    PRIMARY KEY (id),
    KEY payments_order (order_id),
    KEY payments_outcome (outcome, at_ms)
) ENGINE = InnoDB;
