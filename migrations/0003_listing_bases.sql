-- Listings that sessions keep while their catalogs change, with the tools that each is about. Named by its content, so
-- sessions that start from the same state share one; a session's settings hold the name.
CREATE TABLE listing_bases (
    digest  TEXT   NOT NULL PRIMARY KEY,
    body    TEXT   NOT NULL,
    used_at BIGINT NOT NULL
);

CREATE INDEX listing_bases_by_age ON listing_bases (used_at);
