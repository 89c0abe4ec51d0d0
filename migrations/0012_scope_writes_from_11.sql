-- Counts what was written of a scope, config and catalog alike, so that who wrote can ask others for a state that has it.
ALTER TABLE scopes ADD COLUMN writes BIGINT NOT NULL DEFAULT 0;
