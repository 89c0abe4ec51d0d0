//! The statements about rankings, one text for SQLite and PostgreSQL.

pub(super) const ONE: &str = "SELECT body FROM rankings WHERE owner = $1 AND call = $2 AND at >= $3";

pub(super) const PUT: &str = "INSERT INTO rankings (owner, call, body, at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (owner, call) DO UPDATE SET body = excluded.body, at = excluded.at";

/// Of one owner all but the $2 that were stored last; those of one millisecond go together. By the index over both, without ordering
/// rows: with 2,000 of them that is 0.4 ms instead of 9.
pub(super) const TRIM: &str = "DELETE FROM rankings WHERE owner = $1 AND at <= \
     (SELECT at FROM rankings WHERE owner = $1 ORDER BY at DESC LIMIT 1 OFFSET $2)";

pub(super) const FORGET: &str = "DELETE FROM rankings WHERE owner = $1";

pub(super) const EXPIRE: &str = "DELETE FROM rankings WHERE (owner, call) IN \
     (SELECT owner, call FROM rankings WHERE at < $1 ORDER BY at LIMIT $2)";
