-- Versions of tools that wait for an administrator, beside the approved ones in `tools`.
CREATE TABLE held_tools (
    owner_kind  TEXT   NOT NULL,
    owner_id    TEXT   NOT NULL,
    tool_group  TEXT   NOT NULL,
    tool_name   TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    uploaded_by TEXT   NOT NULL,
    held_at     BIGINT NOT NULL,
    PRIMARY KEY (owner_kind, owner_id, tool_group, tool_name)
);

-- Approved versions of tools that were removed while changes had to be approved: rows of `tools`, moved here.
CREATE TABLE removed_tools (
    owner_kind  TEXT   NOT NULL,
    owner_id    TEXT   NOT NULL,
    tool_group  TEXT   NOT NULL,
    tool_name   TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    tokens      TEXT   NOT NULL,
    first_seen  BIGINT NOT NULL,
    changed_at  BIGINT NOT NULL,
    uploaded_by TEXT   NOT NULL,
    PRIMARY KEY (owner_kind, owner_id, tool_group, tool_name)
);
