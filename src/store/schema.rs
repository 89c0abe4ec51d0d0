//! The schema's files, in their order, and which programs work with what a database has of them.
//!
//! A file whose name ends in `_from_N` is an expansion for programs that know the files up to `N`, or a contraction of what only
//! programs before those used: they go on beside it, and may start on it. Any other is for programs that know it.

use std::collections::BTreeMap;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection, SqlStr};

use super::engine::Engine;
use super::failures::sqlstate;
use super::open::OpenError;

/// Number, name and text of schema files.
pub(super) type Migrations<'a> = &'a [(i64, &'static str, &'static str)];

/// Every schema file, in order. Released files are never changed; their checksums are in the database.
pub(super) const MIGRATIONS: Migrations<'static> = &[
    (1, "init", include_str!("../../migrations/0001_init.sql")),
    (2, "vectors", include_str!("../../migrations/0002_vectors.sql")),
    (3, "listing_bases", include_str!("../../migrations/0003_listing_bases.sql")),
    (4, "keys", include_str!("../../migrations/0004_keys.sql")),
    (5, "provenance", include_str!("../../migrations/0005_provenance.sql")),
    (6, "audit", include_str!("../../migrations/0006_audit.sql")),
    (7, "reviews", include_str!("../../migrations/0007_reviews.sql")),
    (8, "usage", include_str!("../../migrations/0008_usage.sql")),
    (9, "setup", include_str!("../../migrations/0009_setup.sql")),
    (10, "mcp_servers", include_str!("../../migrations/0010_mcp_servers.sql")),
    (11, "session_revisions", include_str!("../../migrations/0011_session_revisions.sql")),
    (12, "scope_writes_from_11", include_str!("../../migrations/0012_scope_writes_from_11.sql")),
    (13, "session_counts_from_11", include_str!("../../migrations/0013_session_counts_from_11.sql")),
    (14, "rankings_from_11", include_str!("../../migrations/0014_rankings_from_11.sql")),
    (15, "renewals_from_11", include_str!("../../migrations/0015_renewals_from_11.sql")),
    (16, "shared_work_from_11", include_str!("../../migrations/0016_shared_work_from_11.sql")),
];

/// A file that was run on a database: its number, its name and the checksum of its text.
type Applied = (i64, String, Vec<u8>);

/// Runs the files that are missing; `text` makes of each what a database takes. To be run inside a transaction that keeps others
/// out. Where nothing is missing, nothing is asked for that takes a right to make tables.
pub(super) async fn update<E: Engine>(
    connection: &mut E::Connection,
    migrations: Migrations<'_>,
    text: fn(&'static str) -> SqlStr,
) -> Result<(), OpenError>
where
    E::Connection: Migrate + Connection<Database = E>,
{
    let migration = |&(version, name, file): &(i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text(file), false)
    };
    let mut migrator = Migrator::with_migrations(migrations.iter().map(migration).collect());
    migrator.set_locking(false);
    let table: Option<(i64,)> = sqlx::query_as(E::HAS_MIGRATIONS).fetch_optional(&mut *connection).await?;
    if table.is_some() {
        let applied = "SELECT version, description, checksum FROM _sqlx_migrations ORDER BY version";
        let applied: Vec<Applied> = sqlx::query_as(applied).fetch_all(&mut *connection).await?;
        if is_current(&applied, &migrator)? {
            return Ok(());
        }
    }
    migrator.run_direct(None, connection, false).await.map_err(refused)
}

/// Whether nothing is to be done.
///
/// # Errors
/// What was done to the database is not what this program knows, or not what it works with.
fn is_current(applied: &[Applied], migrator: &Migrator) -> Result<bool, OpenError> {
    let mut missing: BTreeMap<i64, &Migration> =
        migrator.iter().map(|migration| (migration.version, migration)).collect();
    let known = missing.keys().next_back().copied().unwrap_or_default();
    let mut newest = None;
    for (version, name, checksum) in applied {
        match missing.remove(version) {
            Some(migration) if *migration.checksum == **checksum => {}
            Some(_) => return Err(OpenError::ForeignSchema(*version)),
            None if *version < known => return Err(OpenError::ForeignSchema(*version)),
            None if works_from(name).is_some_and(|level| level <= known) => newest = Some(*version),
            None => return Err(OpenError::NewerSchema { found: *version, known }),
        }
    }
    match (newest, missing.keys().next()) {
        (Some(_), Some(version)) => Err(OpenError::ForeignSchema(*version)),
        (Some(found), None) => {
            tracing::warn!(
                found,
                known,
                "a newer program has expanded the schema, which this one works with"
            );
            Ok(true)
        }
        (None, missing) => Ok(missing.is_none()),
    }
}

/// The least level of programs that work with a file which they do not know.
fn works_from(name: &str) -> Option<i64> {
    name.rsplit_once("_from_")?.1.parse().ok()
}

/// Why they did not run.
fn refused(error: MigrateError) -> OpenError {
    match error {
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
            OpenError::ForeignSchema(version)
        }
        // insufficient_privilege
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
            if sqlstate(&error) == Some("42501") =>
        {
            OpenError::MayNotMigrate(error)
        }
        other => OpenError::Migrate(other),
    }
}

#[cfg(test)]
mod tests {
    use sqlx::SqlSafeStr as _;

    use super::*;

    fn migrator(versions: &[i64]) -> Migrator {
        let migration = |version: &i64| {
            let text = "SELECT 1".into_sql_str();
            Migration::new(*version, "a_file".into(), MigrationType::Simple, text, false)
        };
        Migrator::with_migrations(versions.iter().map(migration).collect())
    }

    fn applied(files: &[(i64, &str)]) -> Vec<Applied> {
        let known = migrator(&[1]);
        let checksum = known.iter().next().unwrap().checksum.to_vec();
        files.iter().map(|&(version, name)| (version, name.to_owned(), checksum.clone())).collect()
    }

    #[test]
    fn a_program_works_with_what_newer_ones_expand_and_with_nothing_else() {
        let two = migrator(&[1, 2]);
        let looked = |files: &[(i64, &str)]| is_current(&applied(files), &two);
        assert!(!looked(&[(1, "a")]).unwrap());
        assert!(looked(&[(1, "a"), (2, "b")]).unwrap());
        assert!(looked(&[(1, "a"), (2, "b"), (3, "column_from_2")]).unwrap());
        assert!(looked(&[(1, "a"), (2, "b"), (3, "column_from_1"), (4, "index_from_2")]).unwrap());
        for (files, found) in [
            (&[(1, "a"), (2, "b"), (3, "c")][..], 3),
            (&[(1, "a"), (2, "b"), (3, "column_from_2"), (4, "drop_from_3")], 4),
            (&[(1, "a"), (2, "b"), (3, "from_here")], 3),
        ] {
            let refused = looked(files).unwrap_err();
            assert!(
                matches!(refused, OpenError::NewerSchema { found: version, known: 2 } if version == found),
                "{refused}"
            );
        }
        // Another program's, or not in order.
        for files in [&[(0, "z"), (1, "a")][..], &[(1, "a"), (3, "column_from_1")]] {
            assert!(matches!(looked(files), Err(OpenError::ForeignSchema(_))));
        }
        let mut changed = applied(&[(1, "a"), (2, "b")]);
        changed[1].2 = vec![0];
        assert!(matches!(is_current(&changed, &two), Err(OpenError::ForeignSchema(2))));
    }

    #[test]
    fn a_file_works_with_programs_that_were_there_before_it() {
        for (version, name, _) in MIGRATIONS {
            assert!(works_from(name).is_none_or(|level| level < *version), "{name}");
        }
    }
}
