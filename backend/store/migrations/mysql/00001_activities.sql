-- +goose Up
-- Times are milliseconds since 1970, UTC: no time zone and no rounding can bend
-- them. Ids compare byte by byte. live is the product while the activity is not
-- closed and NULL afterwards, so that its index allows one live activity a product.
CREATE TABLE IF NOT EXISTS activities (
    id             VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    product_id     VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    live           VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NULL,
    title          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    start_ms       BIGINT       NOT NULL,
    end_ms         BIGINT       NOT NULL,
    total          BIGINT       NOT NULL,
    limit_per_user INT          NOT NULL,
    pay_window_ms  BIGINT       NOT NULL,
    reserved       BIGINT       NOT NULL,
    state          VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_ms     BIGINT       NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY activities_live (live),
    CONSTRAINT activities_reserved CHECK (reserved >= 0 AND reserved <= total)
) ENGINE = InnoDB;
