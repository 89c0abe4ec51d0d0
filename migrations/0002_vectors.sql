-- Vectors that an endpoint made of tool texts, kept for the scope whose matcher names it. `space` tells apart whatever
-- makes other vectors of the same text: endpoint, model, settings.
CREATE TABLE vectors (
    owner_kind  TEXT   NOT NULL,
    owner_id    TEXT   NOT NULL,
    space       TEXT   NOT NULL,
    text_digest TEXT   NOT NULL,
    vector      BYTEA  NOT NULL,
    used_at     BIGINT NOT NULL,
    PRIMARY KEY (owner_kind, owner_id, space, text_digest)
);

CREATE INDEX vectors_by_age ON vectors (used_at);

CREATE INDEX vectors_by_owner ON vectors (owner_kind, owner_id, used_at);
