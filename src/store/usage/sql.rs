//! The statements about usage, one text for SQLite and PostgreSQL.

use std::sync::LazyLock;

use crate::store::sql::RowsSql;

pub(super) static ADD: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO usage_days (kind, id, day, counter, value) VALUES ",
        "(@, @, @, @, @)",
        0,
        " ON CONFLICT (kind, id, day, counter) DO UPDATE SET value = usage_days.value + excluded.value",
    )
});

pub(super) static TOOLS_ADD: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO tool_usage (kind, id, day, tool_group, tool_name, finds, calls) VALUES ",
        "(@, @, @, @, @, @, @)",
        0,
        " ON CONFLICT (kind, id, day, tool_group, tool_name) DO UPDATE SET \
         finds = tool_usage.finds + excluded.finds, calls = tool_usage.calls + excluded.calls",
    )
});

pub(super) const DAYS: &str = "SELECT day, counter, value FROM usage_days \
     WHERE kind = $1 AND id = $2 AND day >= $3 ORDER BY day, counter";

/// PostgreSQL's sum of BIGINT is NUMERIC.
pub(super) const TOOLS: &str = "SELECT tool_group, tool_name, CAST(SUM(finds) AS BIGINT) AS all_finds, \
     CAST(SUM(calls) AS BIGINT) AS all_calls FROM tool_usage WHERE kind = $1 AND id = $2 AND day >= $3 \
     GROUP BY tool_group, tool_name ORDER BY all_calls DESC, all_finds DESC, tool_group, tool_name LIMIT $4";

pub(super) const TOOLS_COUNT: &str = "SELECT COUNT(*) FROM tool_usage WHERE kind = $1 AND id = $2";

/// A limit is needed for SQLite to take an offset.
pub(super) const TOOLS_TRIM: &str = "DELETE FROM tool_usage WHERE (kind, id, day, tool_group, tool_name) IN \
     (SELECT kind, id, day, tool_group, tool_name FROM tool_usage WHERE kind = $1 AND id = $2 \
     ORDER BY day DESC, calls DESC, finds DESC, tool_group, tool_name LIMIT 1000000000 OFFSET $3)";

pub(super) static MISSED_ADD: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO missed_queries (kind, id, query, count, last_at) VALUES ",
        "($1, $2, @, @, @)",
        2,
        " ON CONFLICT (kind, id, query) DO UPDATE SET count = missed_queries.count + excluded.count, \
         last_at = CASE WHEN excluded.last_at > missed_queries.last_at \
         THEN excluded.last_at ELSE missed_queries.last_at END",
    )
});

pub(super) const MISSED_TRIM: &str = "DELETE FROM missed_queries WHERE (kind, id, query) IN \
     (SELECT kind, id, query FROM missed_queries WHERE kind = $1 AND id = $2 \
     ORDER BY last_at DESC, count DESC, query LIMIT 1000000000 OFFSET $3)";

pub(super) const MISSED: &str = "SELECT query, count, last_at FROM missed_queries WHERE kind = $1 AND id = $2 \
     ORDER BY count DESC, last_at DESC, query LIMIT $3";

pub(super) const MISSED_FORGET: &str = "DELETE FROM missed_queries WHERE kind = $1 AND id = $2";

pub(super) const DAYS_EXPIRE: &str = "DELETE FROM usage_days WHERE (kind, id, day, counter) IN \
     (SELECT kind, id, day, counter FROM usage_days WHERE day < $1 ORDER BY day LIMIT $2)";

pub(super) const TOOLS_EXPIRE: &str = "DELETE FROM tool_usage WHERE (kind, id, day, tool_group, tool_name) IN \
     (SELECT kind, id, day, tool_group, tool_name FROM tool_usage WHERE day < $1 ORDER BY day LIMIT $2)";

pub(super) const MISSED_EXPIRE: &str = "DELETE FROM missed_queries WHERE (kind, id, query) IN \
     (SELECT kind, id, query FROM missed_queries WHERE last_at < $1 ORDER BY last_at LIMIT $2)";
