-- +goose Up
-- The same as in MySQL; see there for the reasons.
CREATE TABLE tide (
    id     INTEGER NOT NULL PRIMARY KEY,
    height INTEGER NOT NULL
);

INSERT INTO tide (id, height) VALUES (1, 0);
