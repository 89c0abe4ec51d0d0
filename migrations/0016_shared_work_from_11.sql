-- Work that one process does for all: which one watches an MCP server, and until when unless it says so again.
ALTER TABLE mcp_servers ADD COLUMN watch_by TEXT NOT NULL DEFAULT '';
ALTER TABLE mcp_servers ADD COLUMN watch_until BIGINT NOT NULL DEFAULT 0;

-- Texts that a process is having made into vectors.
CREATE TABLE vector_claims (
    kind    TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    space   TEXT   NOT NULL,
    text    TEXT   NOT NULL,
    holder  TEXT   NOT NULL,
    until   BIGINT NOT NULL,
    PRIMARY KEY (kind, id, space, text)
);

-- Of each owner the youngest are kept.
CREATE INDEX rankings_of_owner ON rankings (owner, at);
