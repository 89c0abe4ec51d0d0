//! The statements about reviews, one text for SQLite and PostgreSQL. $1 and $2 are the owner everywhere.

use std::sync::LazyLock;

use crate::store::sql::RowsSql;

/// $1 is the counter of the owner.
pub(super) const REVISION: &str = "SELECT value FROM counters WHERE name = $1";

pub(super) const NEXT_REVISION: &str = "INSERT INTO counters (name, value) VALUES ($1, 1) \
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1";

/// The revision ($3 is its counter) in the first row, then held and removed tools: one statement, so one moment.
pub(super) const REVIEWS: &str = "SELECT CAST(0 AS BIGINT) AS part, '' AS tool_group, '' AS tool_name, '' AS body, '' AS digest, \
     '' AS uploaded_by, value AS number FROM counters WHERE name = $3 \
     UNION ALL SELECT 1, tool_group, tool_name, body, digest, uploaded_by, held_at \
     FROM held_tools WHERE owner_kind = $1 AND owner_id = $2 \
     UNION ALL SELECT 2, tool_group, tool_name, body, digest, uploaded_by, changed_at \
     FROM removed_tools WHERE owner_kind = $1 AND owner_id = $2 \
     ORDER BY part, tool_group, tool_name";

pub(super) static HOLD: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO held_tools (owner_kind, owner_id, tool_group, tool_name, body, digest, uploaded_by, held_at) VALUES ",
        "($1, $2, @, @, @, @, $3, @)",
        3,
        " ON CONFLICT (owner_kind, owner_id, tool_group, tool_name) DO UPDATE SET body = excluded.body, \
         digest = excluded.digest, uploaded_by = excluded.uploaded_by, held_at = excluded.held_at",
    )
});

pub(super) static DROP: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "DELETE FROM held_tools WHERE (owner_kind, owner_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        2,
        ")",
    )
});

/// $3 is the time. Token counts are those of the old version; the write of the tool follows.
pub(super) static APPROVE: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE tools SET body = h.body, digest = h.digest, changed_at = CAST($3 AS BIGINT), uploaded_by = h.uploaded_by \
         FROM held_tools h WHERE h.owner_kind = tools.owner_kind AND h.owner_id = tools.owner_id \
         AND h.tool_group = tools.tool_group AND h.tool_name = tools.tool_name \
         AND (tools.owner_kind, tools.owner_id, tools.tool_group, tools.tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        3,
        ")",
    )
});

pub(super) static REMEMBER: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO removed_tools (owner_kind, owner_id, tool_group, tool_name, body, digest, tokens, first_seen, \
         changed_at, uploaded_by) SELECT owner_kind, owner_id, tool_group, tool_name, body, digest, tokens, first_seen, \
         changed_at, uploaded_by FROM tools WHERE (owner_kind, owner_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        2,
        ") ON CONFLICT (owner_kind, owner_id, tool_group, tool_name) DO UPDATE SET body = excluded.body, \
         digest = excluded.digest, tokens = excluded.tokens, first_seen = excluded.first_seen, \
         changed_at = excluded.changed_at, uploaded_by = excluded.uploaded_by",
    )
});

pub(super) static RESTORE: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO tools (owner_kind, owner_id, tool_group, tool_name, body, digest, tokens, first_seen, \
         changed_at, uploaded_by) SELECT owner_kind, owner_id, tool_group, tool_name, body, digest, tokens, first_seen, \
         changed_at, uploaded_by FROM removed_tools WHERE (owner_kind, owner_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        2,
        ") ON CONFLICT (owner_kind, owner_id, tool_group, tool_name) DO NOTHING",
    )
});

pub(super) static UNREMEMBER: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "DELETE FROM removed_tools WHERE (owner_kind, owner_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        2,
        ")",
    )
});

pub(super) const FORGET: &str = "DELETE FROM removed_tools WHERE owner_kind = $1 AND owner_id = $2";
