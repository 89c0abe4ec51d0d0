-- Counts how often somebody wanted a scope's endpoints to be tried again without writing its config.
ALTER TABLE scopes ADD COLUMN renewals BIGINT NOT NULL DEFAULT 0;
