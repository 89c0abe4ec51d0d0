//! The statements about rankings, one text for SQLite and PostgreSQL.

pub(super) const ONE: &str = "SELECT body FROM rankings WHERE owner = $1 AND call = $2 AND at >= $3";

pub(super) const PUT: &str = "INSERT INTO rankings (owner, call, body, at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (owner, call) DO UPDATE SET body = excluded.body, at = excluded.at";

/// Of one owner all but the $2 that were stored last; a limit is needed for SQLite to take an offset.
pub(super) const TRIM: &str = "DELETE FROM rankings WHERE owner = $1 AND call IN \
     (SELECT call FROM rankings WHERE owner = $1 ORDER BY at DESC, call LIMIT 1000000000 OFFSET $2)";

pub(super) const FORGET: &str = "DELETE FROM rankings WHERE owner = $1";

pub(super) const EXPIRE: &str = "DELETE FROM rankings WHERE (owner, call) IN \
     (SELECT owner, call FROM rankings WHERE at < $1 ORDER BY at LIMIT $2)";
