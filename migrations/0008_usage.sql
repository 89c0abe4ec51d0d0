-- What the requests of a scope came to, by day (days since 1970-01-01, UTC) and counter. A row per counter, so that every
-- process adds to it in one statement and none loses what another added.
CREATE TABLE usage_days (
    kind    TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    day     BIGINT NOT NULL,
    counter TEXT   NOT NULL,
    value   BIGINT NOT NULL,
    PRIMARY KEY (kind, id, day, counter)
);

CREATE INDEX usage_days_by_day ON usage_days (day);

-- How often the tools of a scope were found and called, by day.
CREATE TABLE tool_usage (
    kind       TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    day        BIGINT NOT NULL,
    tool_group TEXT   NOT NULL,
    tool_name  TEXT   NOT NULL,
    finds      BIGINT NOT NULL,
    calls      BIGINT NOT NULL,
    PRIMARY KEY (kind, id, day, tool_group, tool_name)
);

CREATE INDEX tool_usage_by_day ON tool_usage (day);

-- Queries that found nothing, of scopes whose config keeps them.
CREATE TABLE missed_queries (
    kind    TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    query   TEXT   NOT NULL,
    count   BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id, query)
);

CREATE INDEX missed_queries_by_age ON missed_queries (last_at);
