-- MCP servers that the tools of a scope come from. `spec` is JSON without secrets: the texts of headers and variables are the
-- secret 'mcp/<name>' of the scope. `next_sync_at` is 0 where nothing is due by itself; `last_status` is JSON, empty before the
-- first time.
CREATE TABLE mcp_servers (
    kind         TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    spec         TEXT   NOT NULL,
    watched      BIGINT NOT NULL,
    written_at   BIGINT NOT NULL,
    next_sync_at BIGINT NOT NULL,
    failures     BIGINT NOT NULL DEFAULT 0,
    last_sync_at BIGINT NOT NULL DEFAULT 0,
    last_status  TEXT   NOT NULL DEFAULT '',
    tools        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, id, name),
    FOREIGN KEY (kind, id) REFERENCES scopes (kind, id)
);

CREATE INDEX mcp_servers_due ON mcp_servers (next_sync_at);
