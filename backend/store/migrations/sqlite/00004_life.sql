-- +goose Up
-- The same as in MySQL; see there for the reasons.
ALTER TABLE activities ADD COLUMN manual INTEGER NOT NULL DEFAULT 0;

ALTER TABLE activities ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE activities ADD COLUMN target INTEGER NOT NULL DEFAULT 0;

ALTER TABLE activities ADD COLUMN archived_ms INTEGER NULL;

CREATE INDEX activities_archived ON activities (archived_ms);
