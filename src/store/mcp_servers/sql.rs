//! The statements about MCP servers, one text for SQLite and PostgreSQL.

/// A list of servers with their secrets.
macro_rules! servers {
    ($rest:literal) => {
        concat!(
            "SELECT m.kind, m.id, m.name, m.spec, m.watched, m.written_at, m.next_sync_at, m.failures, m.last_sync_at, \
             m.last_status, m.tools, x.origin, x.last4, x.sealed FROM mcp_servers m \
             LEFT JOIN secrets x ON x.kind = m.kind AND x.id = m.id AND x.name = 'mcp/' || m.name WHERE ",
            $rest
        )
    };
}

pub(super) const OF_SCOPE: &str = servers!("m.kind = $1 AND m.id = $2 ORDER BY m.name");

pub(super) const ONE: &str = servers!("m.kind = $1 AND m.id = $2 AND m.name = $3");

pub(super) const DUE: &str = servers!(
    "m.next_sync_at > 0 AND m.next_sync_at <= $1 ORDER BY m.next_sync_at, m.kind, m.id, m.name LIMIT $2"
);

/// Those that the holder $2 watches come first.
pub(super) const WATCHED: &str = servers!(
    "m.watched = 1 AND (m.watch_by = $2 OR m.watch_until < $3) \
     ORDER BY CASE WHEN m.watch_by = $2 THEN 0 ELSE 1 END, m.written_at, m.kind, m.id, m.name LIMIT $1"
);

/// Only where nobody else watches it at $5.
pub(super) const WATCH: &str = "UPDATE mcp_servers SET watch_by = $4, watch_until = $6 \
     WHERE kind = $1 AND id = $2 AND name = $3 AND (watch_by = $4 OR watch_until < $5)";

pub(super) const UNWATCH: &str = "UPDATE mcp_servers SET watch_by = '', watch_until = 0 WHERE watch_by = $1";

/// Servers of a scope beside the one named $3.
pub(super) const OTHERS: &str = "SELECT COUNT(*) FROM mcp_servers WHERE kind = $1 AND id = $2 AND name <> $3";

/// The scope of a server that is nothing else yet.
pub(super) const SCOPE_PUT: &str = "INSERT INTO scopes (kind, id, updated_at) VALUES ($1, $2, $3) \
     ON CONFLICT (kind, id) DO NOTHING";

/// A later version of a server never has the time of an earlier one.
pub(super) const PUT: &str = "INSERT INTO mcp_servers (kind, id, name, spec, watched, written_at, next_sync_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, id, name) DO UPDATE SET spec = excluded.spec, \
     watched = excluded.watched, next_sync_at = excluded.next_sync_at, failures = 0, \
     written_at = CASE WHEN excluded.written_at > mcp_servers.written_at \
     THEN excluded.written_at ELSE mcp_servers.written_at + 1 END";

pub(super) const DELETE: &str = "DELETE FROM mcp_servers WHERE kind = $1 AND id = $2 AND name = $3";

/// Only where it is still due at $4.
pub(super) const CLAIM: &str = "UPDATE mcp_servers SET next_sync_at = $5 \
     WHERE kind = $1 AND id = $2 AND name = $3 AND next_sync_at = $4";

pub(super) const NOTE: &str = "UPDATE mcp_servers SET next_sync_at = $5, failures = $6, last_sync_at = $7, \
     last_status = $8, tools = COALESCE(CAST($9 AS BIGINT), tools) \
     WHERE kind = $1 AND id = $2 AND name = $3 AND written_at = $4";
