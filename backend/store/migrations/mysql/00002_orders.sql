-- +goose Up
-- user_id is binary: every text collation that both MySQL and MariaDB know either
-- folds case or ignores spaces at the end, and would take two buyers for one.
-- claim is NULL once the order holds no stock, which frees it in orders_claim.
-- There is no foreign key: an order of an unknown activity is stored as rejected.
CREATE TABLE IF NOT EXISTS orders (
    id          CHAR(26)       CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    activity_id VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    product_id  VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    user_id     VARBINARY(128) NOT NULL,
    quantity    SMALLINT       NOT NULL,
    claim       SMALLINT       NULL,
    state       VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason      VARCHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reserved_ms BIGINT         NOT NULL,
    created_ms  BIGINT         NOT NULL,
    updated_ms  BIGINT         NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY orders_claim (activity_id, user_id, claim),
    KEY orders_state (activity_id, state, quantity)
) ENGINE = InnoDB;
