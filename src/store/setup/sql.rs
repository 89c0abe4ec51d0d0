//! The statements about setups, one text for SQLite and PostgreSQL.

pub(super) const SCOPES: &str =
    "SELECT kind, id FROM scopes WHERE (kind, id) > ($1, $2) ORDER BY kind, id LIMIT $3";

/// A scope of which nothing is written yet.
pub(super) const SCOPE_BEGIN: &str = "INSERT INTO scopes (kind, id, config, config_written, config_revision, updated_at) \
     VALUES ($1, $2, '{}', 0, 0, $3) ON CONFLICT (kind, id) DO NOTHING";

pub(super) const VERSION_PUT: &str = "INSERT INTO config_versions (kind, id, revision, config, at, actor) \
     SELECT kind, id, config_revision, config, CAST($3 AS BIGINT), CAST($4 AS TEXT) FROM scopes \
     WHERE kind = $1 AND id = $2 AND config_written = 1 \
     ON CONFLICT (kind, id, revision) DO NOTHING";

/// Keeps the $3 latest.
pub(super) const VERSIONS_TRIM: &str = "DELETE FROM config_versions WHERE kind = $1 AND id = $2 AND revision NOT IN \
     (SELECT revision FROM config_versions WHERE kind = $1 AND id = $2 ORDER BY revision DESC LIMIT $3)";

pub(super) const VERSIONS: &str = "SELECT revision, config, at, actor FROM config_versions \
     WHERE kind = $1 AND id = $2 ORDER BY revision DESC";

pub(super) const DRAFT: &str =
    "SELECT body, sealed, updated_at, revision FROM setup_drafts WHERE kind = $1 AND id = $2";

/// $6 is the revision that the stored one must have; a row that is not there has 0.
pub(super) const DRAFT_PUT: &str = "INSERT INTO setup_drafts (kind, id, body, sealed, updated_at, revision) \
     VALUES ($1, $2, $3, $4, $5, 1) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, \
     sealed = excluded.sealed, updated_at = excluded.updated_at, revision = setup_drafts.revision + 1 \
     WHERE setup_drafts.revision = $6 RETURNING revision";

pub(super) const DRAFT_DELETE: &str = "DELETE FROM setup_drafts WHERE kind = $1 AND id = $2";

pub(super) const DRAFTS_EXPIRE: &str = "DELETE FROM setup_drafts WHERE (kind, id) IN \
     (SELECT kind, id FROM setup_drafts WHERE updated_at < $1 ORDER BY updated_at LIMIT $2)";

pub(super) const SESSION: &str =
    "SELECT sealed, expires_at FROM page_sessions WHERE digest = $1 AND expires_at > $2";

pub(super) const SESSION_PUT: &str =
    "INSERT INTO page_sessions (digest, sealed, expires_at) VALUES ($1, $2, $3)";

pub(super) const SESSION_DELETE: &str = "DELETE FROM page_sessions WHERE digest = $1";

pub(super) const SESSIONS_EXPIRE: &str = "DELETE FROM page_sessions WHERE digest IN \
     (SELECT digest FROM page_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";

pub(super) const WARM_COUNTS: &str = "SELECT tool_group, tool_name, COUNT(*) FROM \
     (SELECT tool_group, tool_name FROM warm WHERE user_id = $1 LIMIT $2) AS few GROUP BY tool_group, tool_name";
