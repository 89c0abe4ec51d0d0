-- Keys. The digest is the SHA-256 of the whole key, in hex: keys hold 256 random bits, so it tells nothing. `bindings` is
-- JSON. A change gives a row the next revision, so that who has read up to one revision reads on from there.
CREATE TABLE api_keys (
    id          TEXT   NOT NULL PRIMARY KEY,
    name        TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    role        TEXT   NOT NULL,
    bindings    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT,
    revoked_at  BIGINT,
    last_used   BIGINT,
    predecessor TEXT,
    successor   TEXT,
    revision    BIGINT NOT NULL
);

CREATE UNIQUE INDEX api_keys_by_revision ON api_keys (revision);

CREATE INDEX api_keys_by_creation ON api_keys (created_at, id);

-- Numbers that only grow. A write that takes the next one keeps others from it until it is committed, so that revisions
-- become visible in their order.
CREATE TABLE counters (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
