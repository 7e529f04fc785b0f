-- +goose Up
-- manual: only the operator preheats and opens it. changes counts the changes of
-- the total; target is the total that the last of them is to reach, 0 once both
-- stores have it. archived_ms is since when everything of it is settled; NULL until
-- then.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'activities' AND column_name = 'archived_ms');

SET @statement = IF(@missing, 'ALTER TABLE activities ADD COLUMN manual TINYINT NOT NULL DEFAULT 0, ADD COLUMN changes BIGINT NOT NULL DEFAULT 0, ADD COLUMN target BIGINT NOT NULL DEFAULT 0, ADD COLUMN archived_ms BIGINT NULL, ADD KEY activities_archived (archived_ms)', 'DO 0');

PREPARE change_activities FROM @statement;

EXECUTE change_activities;

DEALLOCATE PREPARE change_activities;
