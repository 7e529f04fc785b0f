-- +goose Up
-- The same table as in MySQL; see there for the reasons.
CREATE TABLE activities (
    id             TEXT    NOT NULL PRIMARY KEY CHECK (length(id) <= 64),
    product_id     TEXT    NOT NULL CHECK (length(product_id) <= 64),
    live           TEXT    NULL,
    title          TEXT    NOT NULL CHECK (length(title) <= 255),
    start_ms       INTEGER NOT NULL,
    end_ms         INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    limit_per_user INTEGER NOT NULL,
    pay_window_ms  INTEGER NOT NULL,
    reserved       INTEGER NOT NULL,
    state          TEXT    NOT NULL CHECK (length(state) <= 16),
    created_ms     INTEGER NOT NULL,
    CONSTRAINT activities_reserved CHECK (reserved >= 0 AND reserved <= total)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX activities_live ON activities (live);

-- A version is noted once: of two processes that migrate at the same moment, the
-- slower one undoes its transaction.
CREATE UNIQUE INDEX goose_db_version_once ON goose_db_version (version_id);
