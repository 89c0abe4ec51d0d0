-- Counts the writes of a session, so that a process that keeps it in memory can tell whether another one changed it.
ALTER TABLE sessions ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
