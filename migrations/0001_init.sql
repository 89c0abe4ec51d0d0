-- First schema. Common to SQLite and PostgreSQL: JSON and other opaque text is TEXT (kept byte for byte), times
-- are BIGINT milliseconds since the Unix epoch, flags are BIGINT 0 or 1, sealed bytes are TEXT in hex.
-- A file that has been released is never changed; a change is a new file.

-- What the program keeps for itself.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row per user or project that was ever written. It is never deleted, so that config_revision never comes
-- back; config_written is 0 after the config was deleted.
CREATE TABLE scopes (
    kind            TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    config          TEXT   NOT NULL DEFAULT '{}',
    config_written  BIGINT NOT NULL DEFAULT 0,
    config_revision BIGINT NOT NULL DEFAULT 0,
    catalog_version TEXT   NOT NULL DEFAULT '',
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE TABLE secrets (
    kind   TEXT NOT NULL,
    id     TEXT NOT NULL,
    name   TEXT NOT NULL,
    origin TEXT NOT NULL,
    last4  TEXT,
    sealed TEXT NOT NULL,
    PRIMARY KEY (kind, id, name),
    FOREIGN KEY (kind, id) REFERENCES scopes (kind, id)
);

-- Tools of every catalog. owner_kind is user, project or inline; the owner_id of an inline catalog is
-- '<user>/<ref>' (no user id holds a slash).
CREATE TABLE tools (
    owner_kind TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    tool_group TEXT NOT NULL,
    tool_name  TEXT NOT NULL,
    body       TEXT NOT NULL,
    digest     TEXT NOT NULL,
    tokens     TEXT NOT NULL,
    PRIMARY KEY (owner_kind, owner_id, tool_group, tool_name)
);

CREATE TABLE inline_catalogs (
    user_id   TEXT   NOT NULL,
    ref       TEXT   NOT NULL,
    version   TEXT   NOT NULL,
    last_used BIGINT NOT NULL,
    PRIMARY KEY (user_id, ref)
);

CREATE INDEX inline_catalogs_by_age ON inline_catalogs (last_used);

-- project_id is '' for a session without a project.
CREATE TABLE sessions (
    user_id    TEXT   NOT NULL,
    project_id TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    settings   TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    last_seen  BIGINT NOT NULL,
    ledger     TEXT   NOT NULL,
    PRIMARY KEY (user_id, project_id, session_id)
);

CREATE INDEX sessions_by_age ON sessions (last_seen);

CREATE TABLE warm (
    user_id    TEXT   NOT NULL,
    project_id TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    tool_group TEXT   NOT NULL,
    tool_name  TEXT   NOT NULL,
    first_seq  BIGINT NOT NULL,
    last_used  BIGINT NOT NULL,
    pinned     BIGINT NOT NULL,
    pending    BIGINT NOT NULL,
    PRIMARY KEY (user_id, project_id, session_id, tool_group, tool_name),
    FOREIGN KEY (user_id, project_id, session_id)
        REFERENCES sessions (user_id, project_id, session_id) ON DELETE CASCADE
);
