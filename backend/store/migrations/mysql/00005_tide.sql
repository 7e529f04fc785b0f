-- +goose Up
-- One row. Its height rises whenever something was written; Redis remembers the
-- highest. One that is lower says that the database was restored from a backup.
CREATE TABLE IF NOT EXISTS tide (
    id     TINYINT NOT NULL,
    height BIGINT  NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB;

INSERT IGNORE INTO tide (id, height) VALUES (1, 0);
