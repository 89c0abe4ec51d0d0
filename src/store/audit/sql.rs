//! The statements about the log of changes, one text for SQLite and PostgreSQL.

/// Taken before an entry is written.
pub(super) const NEXT_ID: &str = "INSERT INTO counters (name, value) VALUES ('audit', 1) \
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value";

pub(super) const INSERT: &str = "INSERT INTO audit (id, at, actor, action, user_id, project_id, session_id, key_id, \
     revision_before, revision_after, summary, request_id) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// What only administrators do is kept by its own number, so that nobody else's changes push it out.
macro_rules! of_admins {
    () => {
        "action IN ('key.create', 'key.patch', 'key.revoke', 'key.rotate', 'tool.approve', 'tool.reject')"
    };
}

/// Whether an action is among them.
pub(super) fn is_of_admins(action: &str) -> bool {
    of_admins!().contains(&format!("'{action}'"))
}

/// Keeps the $1 latest, and those of administrators.
pub(super) const TRIM: &str = concat!(
    "DELETE FROM audit WHERE NOT ",
    of_admins!(),
    " AND id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET $1)"
);

/// Keeps the $1 latest of administrators.
pub(super) const TRIM_OF_ADMINS: &str = concat!(
    "DELETE FROM audit WHERE ",
    of_admins!(),
    " AND id <= (SELECT id FROM audit WHERE ",
    of_admins!(),
    " ORDER BY id DESC LIMIT 1 OFFSET $1)"
);

/// Keeps the $2 latest of a user or a project.
pub(super) const TRIM_OF_USER: &str = concat!(
    "DELETE FROM audit WHERE user_id = $1 AND NOT ",
    of_admins!(),
    " AND id <= (SELECT id FROM audit WHERE user_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)"
);
pub(super) const TRIM_OF_PROJECT: &str = concat!(
    "DELETE FROM audit WHERE project_id = $1 AND NOT ",
    of_admins!(),
    " AND id <= (SELECT id FROM audit WHERE project_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)"
);

pub(super) const EXPIRE: &str =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY id LIMIT $2)";

/// A list with this condition beside what all lists have: $1 is the id that entries are before, $2 the earliest time, $3 and $4
/// actor and action or null, $5 whether changes of sessions count, $6 the number of entries.
macro_rules! list {
    ($condition:literal) => {
        concat!(
            "SELECT id, at, actor, action, user_id, project_id, session_id, key_id, revision_before, revision_after, \
             summary, request_id FROM audit WHERE id < $1 AND at >= $2 \
             AND (CAST($3 AS TEXT) IS NULL OR actor = $3) AND (CAST($4 AS TEXT) IS NULL OR action = $4) \
             AND (CAST($5 AS BIGINT) = 1 OR session_id IS NULL)",
            $condition,
            " ORDER BY id DESC LIMIT $6"
        )
    };
}

pub(super) const LIST: &str = list!("");
pub(super) const LIST_OF_USER: &str = list!(" AND user_id = $7");
pub(super) const LIST_OF_PROJECT: &str = list!(" AND project_id = $7");
pub(super) const LIST_OF_BOTH: &str = list!(" AND user_id = $7 AND project_id = $8");
