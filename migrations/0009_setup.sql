-- What the setup flow keeps. The latest documents of each config, without secrets, so that a change can be undone.
CREATE TABLE config_versions (
    kind     TEXT   NOT NULL,
    id       TEXT   NOT NULL,
    revision BIGINT NOT NULL,
    config   TEXT   NOT NULL,
    at       BIGINT NOT NULL,
    actor    TEXT   NOT NULL,
    PRIMARY KEY (kind, id, revision)
);

-- A setup that is being prepared, one of each scope. `body` is opaque; `sealed` is the secret in it, in hex.
CREATE TABLE setup_drafts (
    kind       TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    sealed     TEXT,
    revision   BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE INDEX setup_drafts_by_age ON setup_drafts (updated_at);

-- Browsers that are signed in to the pages, by the digest of what their cookie holds. `sealed` is the digest of the key
-- that was shown, sealed, in hex.
CREATE TABLE page_sessions (
    digest     TEXT   NOT NULL PRIMARY KEY,
    sealed     TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX page_sessions_by_age ON page_sessions (expires_at);
