//! The statements about claims, one text for SQLite and PostgreSQL.

use std::sync::LazyLock;

use crate::store::sql::RowsSql;

pub(super) const EXPIRE: &str = "DELETE FROM vector_claims WHERE kind = $1 AND id = $2 AND until < $3";

/// Those that are another's stay so; what has ended was deleted before.
pub(super) static CLAIM: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO vector_claims (kind, id, space, holder, until, text) VALUES ",
        "($1, $2, $3, $4, CAST($5 AS BIGINT), @)",
        5,
        " ON CONFLICT (kind, id, space, text) DO UPDATE SET until = excluded.until \
         WHERE vector_claims.holder = excluded.holder",
    )
});

pub(super) const HELD: &str =
    "SELECT text FROM vector_claims WHERE kind = $1 AND id = $2 AND space = $3 AND holder = $4";

pub(super) static RELEASE: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "DELETE FROM vector_claims WHERE kind = $1 AND id = $2 AND space = $3 AND holder = $4 AND text IN (",
        "@",
        4,
        ")",
    )
});
