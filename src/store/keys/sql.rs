//! The statements about keys, one text for SQLite and PostgreSQL.

use std::sync::LazyLock;

use crate::store::sql::RowsSql;

/// The columns of a row, in the order in which they are read.
macro_rules! columns {
    () => {
        "id, name, digest, role, bindings, created_at, expires_at, revoked_at, last_used, predecessor, successor, revision"
    };
}

/// Taken before a row is written.
pub(super) const NEXT_REVISION: &str = "INSERT INTO counters (name, value) VALUES ('api_keys', 1) \
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value";

pub(super) const CHANGES: &str =
    concat!("SELECT ", columns!(), " FROM api_keys WHERE revision > $1 ORDER BY revision");

pub(super) const KEY: &str = concat!("SELECT ", columns!(), " FROM api_keys WHERE id = $1");

pub(super) const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM api_keys WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3"
);

pub(super) const ANY: &str = "SELECT id FROM api_keys LIMIT 1";

pub(super) const INSERT: &str = concat!(
    "INSERT INTO api_keys (",
    columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, NULL, $8, NULL, $9) RETURNING ",
    columns!()
);

/// $3 tells whether $4 is the new expiry.
pub(super) const CHANGE: &str = concat!(
    "UPDATE api_keys SET name = COALESCE(CAST($2 AS TEXT), name), bindings = COALESCE(CAST($7 AS TEXT), bindings), \
     expires_at = CASE WHEN CAST($3 AS BIGINT) = 1 THEN CAST($4 AS BIGINT) ELSE expires_at END, \
     revoked_at = COALESCE(revoked_at, CAST($5 AS BIGINT)), revision = $6 WHERE id = $1 RETURNING ",
    columns!()
);

/// $2 is the latest expiry.
pub(super) const SUCCEED: &str = concat!(
    "UPDATE api_keys SET successor = $3, expires_at = CASE WHEN expires_at < $2 THEN expires_at ELSE $2 END, \
     revision = $4 WHERE id = $1 RETURNING ",
    columns!()
);

pub(super) static TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE api_keys SET last_used = v.column2 FROM (VALUES ",
        "(@, CAST(@ AS BIGINT))",
        0,
        ") AS v WHERE api_keys.id = v.column1 AND COALESCE(api_keys.last_used, 0) < v.column2",
    )
});

pub(super) const EXPIRE: &str = "DELETE FROM api_keys WHERE id IN \
     (SELECT id FROM api_keys WHERE revoked_at < $1 OR expires_at < $1 ORDER BY id LIMIT $2)";
