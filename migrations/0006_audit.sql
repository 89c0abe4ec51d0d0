-- Changes by administrators, the oldest of which go first. `summary` is JSON: names and numbers, never a value that was set.
-- A change of a config or a catalog has a user or a project, one of a session a session too, one of a key its id.
CREATE TABLE audit (
    id              BIGINT NOT NULL PRIMARY KEY,
    at              BIGINT NOT NULL,
    actor           TEXT   NOT NULL,
    action          TEXT   NOT NULL,
    user_id         TEXT,
    project_id      TEXT,
    session_id      TEXT,
    key_id          TEXT,
    revision_before TEXT,
    revision_after  TEXT,
    summary         TEXT   NOT NULL,
    request_id      TEXT
);

CREATE INDEX audit_by_user ON audit (user_id, id);

CREATE INDEX audit_by_project ON audit (project_id, id);
