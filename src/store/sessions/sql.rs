//! The statements about sessions and warm sets, one text for SQLite and PostgreSQL.

use std::sync::LazyLock;

use crate::store::sql::RowsSql;

/// Sessions of a user, as far as $2.
pub(super) const SESSIONS_COUNT: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM sessions WHERE user_id = $1 LIMIT $2) AS few";

pub(super) const SESSION_EXISTS: &str =
    "SELECT 1 FROM sessions WHERE user_id = $1 AND project_id = $2 AND session_id = $3";

/// The session in the first row, then its warm set: one statement, so one moment, and the settings once.
pub(super) const SESSION: &str = "SELECT CAST(0 AS BIGINT) AS part, settings AS text1, ledger AS text2, created_at AS number1, \
     last_seen AS number2, 0 AS flag1, revision AS flag2, \
     assemblies, searches, describes, calls, tokens_all, tokens_sent, tokens_answers, cache_breaks \
     FROM sessions WHERE user_id = $1 AND project_id = $2 AND session_id = $3 \
     UNION ALL SELECT 1, tool_group, tool_name, first_seq, last_used, pinned, pending, 0, 0, 0, 0, 0, 0, 0, 0 \
     FROM warm WHERE user_id = $1 AND project_id = $2 AND session_id = $3 \
     ORDER BY part, number1, text1, text2";

pub(super) const SESSION_STATE: &str = "SELECT created_at, revision, last_seen FROM sessions \
     WHERE user_id = $1 AND project_id = $2 AND session_id = $3";

/// A session that must not be there.
pub(super) const SESSION_BEGIN: &str = "INSERT INTO sessions \
     (user_id, project_id, session_id, settings, created_at, last_seen, ledger, revision) \
     VALUES ($1, $2, $3, COALESCE(CAST($4 AS TEXT), '{}'), $5, $6, '{}', $7) \
     ON CONFLICT (user_id, project_id, session_id) DO NOTHING RETURNING revision";

/// A session that must be the row that was read.
pub(super) const SESSION_CHANGE: &str = "UPDATE sessions SET \
     settings = COALESCE(CAST($4 AS TEXT), settings), revision = revision + 1, \
     last_seen = CASE WHEN $6 > last_seen THEN $6 ELSE last_seen END \
     WHERE user_id = $1 AND project_id = $2 AND session_id = $3 AND created_at = $5 AND revision = $7 \
     RETURNING revision";

pub(super) const SESSION_PUT: &str = "INSERT INTO sessions \
     (user_id, project_id, session_id, settings, created_at, last_seen, ledger, revision) \
     VALUES ($1, $2, $3, COALESCE(CAST($4 AS TEXT), '{}'), $5, $6, '{}', $7) \
     ON CONFLICT (user_id, project_id, session_id) DO UPDATE SET \
     settings = COALESCE(CAST($4 AS TEXT), sessions.settings), revision = sessions.revision + 1, \
     last_seen = CASE WHEN excluded.last_seen > sessions.last_seen \
     THEN excluded.last_seen ELSE sessions.last_seen END RETURNING revision";

pub(super) static SESSIONS_TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE sessions SET assemblies = assemblies + v.column5, searches = searches + v.column6, \
         describes = describes + v.column7, calls = calls + v.column8, tokens_all = tokens_all + v.column9, \
         tokens_sent = tokens_sent + v.column10, tokens_answers = tokens_answers + v.column11, \
         cache_breaks = cache_breaks + v.column12, \
         last_seen = CASE WHEN v.column4 > sessions.last_seen THEN v.column4 ELSE sessions.last_seen END \
         FROM (VALUES ",
        "(@, @, @, CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT), \
         CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT), CAST(@ AS BIGINT))",
        0,
        ") AS v WHERE sessions.user_id = v.column1 AND sessions.project_id = v.column2 \
         AND sessions.session_id = v.column3 AND sessions.created_at = v.column13",
    )
});

pub(super) const SESSION_DELETE: &str =
    "DELETE FROM sessions WHERE user_id = $1 AND project_id = $2 AND session_id = $3";

pub(super) const SESSION_DELETE_IDLE: &str =
    "DELETE FROM sessions WHERE user_id = $1 AND project_id = $2 AND session_id = $3 AND last_seen < $4";

/// Looked at twice: one may be seen between the two.
pub(super) const SESSIONS_EXPIRE: &str = "DELETE FROM sessions WHERE (user_id, project_id, session_id) IN \
     (SELECT user_id, project_id, session_id FROM sessions WHERE last_seen < $1 ORDER BY last_seen LIMIT $2) AND last_seen < $1 \
     RETURNING user_id, project_id, session_id";

pub(super) const SESSIONS_OF_USER: &str = "SELECT project_id, session_id, created_at, last_seen, \
     (SELECT COUNT(*) FROM warm w WHERE w.user_id = s.user_id AND w.project_id = s.project_id \
     AND w.session_id = s.session_id) AS warm \
     FROM sessions s WHERE user_id = $1 AND (project_id, session_id) > ($2, $3) \
     ORDER BY project_id, session_id LIMIT $4";

pub(super) const SESSIONS_OF_PROJECT: &str = "SELECT project_id, session_id, created_at, last_seen, \
     (SELECT COUNT(*) FROM warm w WHERE w.user_id = s.user_id AND w.project_id = s.project_id \
     AND w.session_id = s.session_id) AS warm \
     FROM sessions s WHERE user_id = $1 AND project_id = $2 AND session_id > $3 \
     ORDER BY session_id LIMIT $4";

pub(super) const SESSION_PROJECTS: &str = "SELECT DISTINCT project_id FROM sessions WHERE user_id = $1";

pub(super) const WARM_CLEAR: &str =
    "DELETE FROM warm WHERE user_id = $1 AND project_id = $2 AND session_id = $3";

pub(super) static WARM_REMOVE: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "DELETE FROM warm WHERE (user_id, project_id, session_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, $3, @, @)",
        3,
        ")",
    )
});

/// `first_seq` is not in the update: a warm tool keeps its place.
pub(super) static WARM_PUT: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO warm (user_id, project_id, session_id, tool_group, tool_name, first_seq, last_used, \
         pinned, pending) VALUES ",
        "($1, $2, $3, @, @, @, @, @, @)",
        3,
        " ON CONFLICT (user_id, project_id, session_id, tool_group, tool_name) DO UPDATE SET \
         last_used = CASE WHEN excluded.last_used > warm.last_used \
         THEN excluded.last_used ELSE warm.last_used END, \
         pinned = excluded.pinned, pending = excluded.pending",
    )
});

pub(super) static WARM_TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE warm SET last_used = v.column6 FROM (VALUES ",
        "(@, @, @, @, @, CAST(@ AS BIGINT), CAST(@ AS BIGINT))",
        0,
        ") AS v WHERE warm.user_id = v.column1 AND warm.project_id = v.column2 \
         AND warm.session_id = v.column3 AND warm.tool_group = v.column4 AND warm.tool_name = v.column5 \
         AND warm.last_used < v.column6 AND EXISTS (SELECT 1 FROM sessions WHERE sessions.user_id = v.column1 \
         AND sessions.project_id = v.column2 AND sessions.session_id = v.column3 AND sessions.created_at = v.column7)",
    )
});
