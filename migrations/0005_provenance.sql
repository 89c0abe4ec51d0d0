-- Since when a stored tool is there, since when it is what it is, and who uploaded that. 0 and '' for tools of before.
ALTER TABLE tools ADD COLUMN first_seen BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tools ADD COLUMN changed_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tools ADD COLUMN uploaded_by TEXT NOT NULL DEFAULT '';
