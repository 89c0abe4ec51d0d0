//! The statements, one text for SQLite and PostgreSQL: `$1` placeholders, `ON CONFLICT ... DO UPDATE`, `RETURNING`,
//! `CASE` for the larger of two numbers, casts where only SQLite could guess a type.
//!
//! This module owns texts only; it runs nothing.

use std::sync::LazyLock;

/// Rows per statement, largest first. Each size is one prepared statement; a batch is made of the fewest.
const SIZES: [usize; 6] = [128, 32, 8, 4, 2, 1];

/// A statement that takes many rows at once, in several sizes.
#[derive(Debug)]
pub(super) struct RowsSql {
    texts: [String; SIZES.len()],
}

impl RowsSql {
    /// `head`, then `row` once per row, then `tail`. Every `@` in `row` becomes the next placeholder after the
    /// `fixed` ones, which all rows share.
    pub(super) fn new(head: &str, row: &str, fixed: usize, tail: &str) -> Self {
        let text = |rows: usize| {
            let mut text = String::from(head);
            let mut placeholder = fixed;
            for index in 0..rows {
                if index > 0 {
                    text.push_str(", ");
                }
                for character in row.chars() {
                    if character == '@' {
                        placeholder += 1;
                        text.push('$');
                        text.push_str(&placeholder.to_string());
                    } else {
                        text.push(character);
                    }
                }
            }
            text.push_str(tail);
            text
        };
        Self { texts: SIZES.map(text) }
    }

    /// The next statement for `remaining` rows, and how many of them it takes; `None` when there are none.
    pub(super) fn next(&'static self, remaining: usize) -> Option<(&'static str, usize)> {
        let index = SIZES.iter().position(|&size| size <= remaining)?;
        Some((self.texts.get(index)?, *SIZES.get(index)?))
    }
}

pub(super) const META: &str = "SELECT value FROM meta WHERE key = $1";

/// `DO UPDATE` rather than `DO NOTHING`, so that the stored value is returned in both cases.
pub(super) const META_INIT: &str = "INSERT INTO meta (key, value) VALUES ($1, $2) \
     ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value";

pub(super) const META_PUT: &str = "INSERT INTO meta (key, value) VALUES ($1, $2) \
     ON CONFLICT (key) DO UPDATE SET value = excluded.value";

pub(super) const SECRETS: &str = "SELECT kind, id, name, sealed FROM secrets ORDER BY kind, id, name";

pub(super) const DRAFT_KEYS_DROP: &str =
    "UPDATE setup_drafts SET sealed = NULL, revision = revision + 1 WHERE sealed IS NOT NULL";

pub(super) const PAGE_SESSIONS_DROP: &str = "DELETE FROM page_sessions";

pub(super) const SECRET_RESEAL: &str =
    "UPDATE secrets SET sealed = $5 WHERE kind = $1 AND id = $2 AND name = $3 AND sealed = $4";

/// With the secrets that belong to its config; those of MCP servers are theirs.
pub(super) const SCOPE: &str = "SELECT s.config, s.config_written, s.config_revision, s.writes, s.renewals, s.catalog_version, \
     x.name, x.origin, x.last4, x.sealed \
     FROM scopes s LEFT JOIN secrets x ON x.kind = s.kind AND x.id = s.id AND x.name NOT LIKE 'mcp/%' \
     WHERE s.kind = $1 AND s.id = $2 ORDER BY x.name";

pub(super) const SCOPE_STATE: &str =
    "SELECT config_written, config_revision, catalog_version FROM scopes WHERE kind = $1 AND id = $2";

/// Counts a scope that a key begins, unless it has begun $2 already.
pub(super) const SCOPE_BEGUN: &str = "INSERT INTO counters (name, value) VALUES ($1, 1) \
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 WHERE counters.value < $2 RETURNING value";

pub(super) const CONFIG_PUT: &str = "INSERT INTO scopes (kind, id, config, config_written, config_revision, updated_at, writes) \
     VALUES ($1, $2, $3, 1, 1, $4, 1) ON CONFLICT (kind, id) DO UPDATE SET config = excluded.config, \
     config_written = 1, config_revision = scopes.config_revision + 1, updated_at = excluded.updated_at, writes = scopes.writes + 1";

pub(super) const CONFIG_DELETE: &str = "UPDATE scopes SET config = '{}', config_written = 0, \
     config_revision = config_revision + 1, updated_at = $3, writes = writes + 1 WHERE kind = $1 AND id = $2";

pub(super) const SCOPE_RENEW: &str = "UPDATE scopes SET renewals = renewals + 1 WHERE kind = $1 AND id = $2";

pub(super) const SECRET_PUT: &str = "INSERT INTO secrets (kind, id, name, origin, last4, sealed) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (kind, id, name) DO UPDATE SET \
     origin = excluded.origin, last4 = excluded.last4, sealed = excluded.sealed";

pub(super) const SECRET_DELETE: &str = "DELETE FROM secrets WHERE kind = $1 AND id = $2 AND name = $3";

/// Those that belong to a config.
pub(super) const SECRETS_DELETE: &str =
    "DELETE FROM secrets WHERE kind = $1 AND id = $2 AND name NOT LIKE 'mcp/%'";

pub(super) const CATALOG_VERSION_PUT: &str = "INSERT INTO scopes (kind, id, catalog_version, updated_at, writes) VALUES ($1, $2, $3, $4, 1) \
     ON CONFLICT (kind, id) DO UPDATE SET catalog_version = excluded.catalog_version, \
     updated_at = excluded.updated_at, writes = scopes.writes + 1";

/// The version stands in every row, so that one statement (one moment) reads both.
pub(super) const SCOPE_CATALOG: &str = "SELECT s.catalog_version, t.tool_group, t.tool_name, t.body, t.digest, t.tokens \
     FROM scopes s LEFT JOIN tools t ON t.owner_kind = s.kind AND t.owner_id = s.id \
     WHERE s.kind = $1 AND s.id = $2 ORDER BY t.tool_group, t.tool_name";

/// $3 is the tools' owner of the catalog that $1 and $2 name.
pub(super) const INLINE_CATALOG: &str = "SELECT c.version, t.tool_group, t.tool_name, t.body, t.digest, t.tokens \
     FROM inline_catalogs c LEFT JOIN tools t ON t.owner_kind = 'inline' AND t.owner_id = $3 \
     WHERE c.user_id = $1 AND c.ref = $2 ORDER BY t.tool_group, t.tool_name";

pub(super) const PROVENANCE: &str = "SELECT digest, first_seen, changed_at, uploaded_by FROM tools \
     WHERE owner_kind = $1 AND owner_id = $2 AND tool_group = $3 AND tool_name = $4";

pub(super) const TOOLS_DELETE: &str = "DELETE FROM tools WHERE owner_kind = $1 AND owner_id = $2";

/// The owner stands in every row of the list: only then does SQLite look each tool up by its whole key.
pub(super) static TOOLS_REMOVE: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "DELETE FROM tools WHERE (owner_kind, owner_id, tool_group, tool_name) IN (VALUES ",
        "($1, $2, @, @)",
        2,
        ")",
    )
});

/// A tool keeps when it was first seen; while its content is the same, also when that changed and who uploaded it.
pub(super) static TOOLS_PUT: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO tools (owner_kind, owner_id, tool_group, tool_name, body, digest, tokens, \
         first_seen, changed_at, uploaded_by) VALUES ",
        "($1, $2, @, @, @, @, @, @, @, $3)",
        3,
        " ON CONFLICT (owner_kind, owner_id, tool_group, tool_name) DO UPDATE SET \
         changed_at = CASE WHEN tools.digest = excluded.digest THEN tools.changed_at ELSE excluded.changed_at END, \
         uploaded_by = CASE WHEN tools.digest = excluded.digest THEN tools.uploaded_by ELSE excluded.uploaded_by END, \
         body = excluded.body, digest = excluded.digest, tokens = excluded.tokens",
    )
});

pub(super) const INLINE_VERSION: &str = "SELECT version FROM inline_catalogs WHERE user_id = $1 AND ref = $2";

pub(super) const INLINE_PUT: &str =
    "INSERT INTO inline_catalogs (user_id, ref, version, last_used) VALUES ($1, $2, $3, $4)";

pub(super) static INLINE_TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE inline_catalogs SET last_used = v.column3 FROM (VALUES ",
        "(@, @, CAST(@ AS BIGINT))",
        0,
        ") AS v WHERE inline_catalogs.user_id = v.column1 AND inline_catalogs.ref = v.column2 \
         AND inline_catalogs.last_used < v.column3",
    )
});

pub(super) const INLINE_EXPIRE: &str = "DELETE FROM inline_catalogs WHERE (user_id, ref) IN \
     (SELECT user_id, ref FROM inline_catalogs WHERE last_used < $1 ORDER BY last_used LIMIT $2) \
     RETURNING user_id, ref";

/// The texts stand in the list; the fixed values are their owner and space.
pub(super) static VECTORS: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "SELECT text_digest, vector, used_at FROM vectors \
         WHERE owner_kind = $1 AND owner_id = $2 AND space = $3 AND text_digest IN (",
        "@",
        3,
        ")",
    )
});

pub(super) static VECTORS_PUT: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "INSERT INTO vectors (owner_kind, owner_id, space, text_digest, vector, used_at) VALUES ",
        "($1, $2, $3, @, @, @)",
        3,
        " ON CONFLICT (owner_kind, owner_id, space, text_digest) DO UPDATE SET \
         vector = excluded.vector, used_at = excluded.used_at",
    )
});

/// $4 is the time.
pub(super) static VECTORS_TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE vectors SET used_at = CAST($4 AS BIGINT) \
         WHERE owner_kind = $1 AND owner_id = $2 AND space = $3 AND text_digest IN (",
        "@",
        4,
        ")",
    )
});

/// Of one owner all but the $3 that were used last; a limit is needed for SQLite to take an offset.
pub(super) const VECTORS_TRIM: &str = "DELETE FROM vectors WHERE (owner_kind, owner_id, space, text_digest) IN \
     (SELECT owner_kind, owner_id, space, text_digest FROM vectors WHERE owner_kind = $1 AND owner_id = $2 \
     ORDER BY used_at DESC, space, text_digest LIMIT 1000000000 OFFSET $3)";

pub(super) const VECTORS_DROP: &str =
    "DELETE FROM vectors WHERE owner_kind = $1 AND owner_id = $2 AND space = $3";

pub(super) const VECTORS_EXPIRE: &str = "DELETE FROM vectors WHERE (owner_kind, owner_id, space, text_digest) IN \
     (SELECT owner_kind, owner_id, space, text_digest FROM vectors WHERE used_at < $1 ORDER BY used_at LIMIT $2)";

pub(super) const LISTING_BASE: &str = "SELECT body FROM listing_bases WHERE digest = $1";

/// A base is named by its content, so one that is there is the same and only grows younger.
pub(super) const LISTING_BASE_PUT: &str = "INSERT INTO listing_bases (digest, body, used_at) VALUES ($1, $2, $3) \
     ON CONFLICT (digest) DO UPDATE SET used_at = CASE WHEN excluded.used_at > listing_bases.used_at \
     THEN excluded.used_at ELSE listing_bases.used_at END";

pub(super) static LISTING_BASES_TOUCH: LazyLock<RowsSql> = LazyLock::new(|| {
    RowsSql::new(
        "UPDATE listing_bases SET used_at = v.column2 FROM (VALUES ",
        "(@, CAST(@ AS BIGINT))",
        0,
        ") AS v WHERE listing_bases.digest = v.column1 AND listing_bases.used_at < v.column2",
    )
});

pub(super) const LISTING_BASES_EXPIRE: &str = "DELETE FROM listing_bases WHERE digest IN \
     (SELECT digest FROM listing_bases WHERE used_at < $1 ORDER BY used_at LIMIT $2) RETURNING digest";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_count_on_from_the_shared_ones() {
        let sql = RowsSql::new("head ", "($1, @, @)", 1, " tail");
        assert_eq!(sql.texts[5], "head ($1, $2, $3) tail");
        assert_eq!(sql.texts[4], "head ($1, $2, $3), ($1, $4, $5) tail");
    }

    #[test]
    fn any_number_of_rows_is_covered_exactly() {
        for rows in 0..600 {
            let mut taken = 0;
            while let Some((_, size)) = TOOLS_PUT.next(rows - taken) {
                taken += size;
            }
            assert_eq!(taken, rows);
        }
    }
}
