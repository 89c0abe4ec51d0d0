-- What a session did, as sums that every process adds to; `ledger` is what earlier versions wrote, and stays the ground of the sums.
ALTER TABLE sessions ADD COLUMN assemblies BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN searches BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN describes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN calls BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens_all BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens_sent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens_answers BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cache_breaks BIGINT NOT NULL DEFAULT 0;
