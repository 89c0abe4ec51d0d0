//! The schema's files, in their order, and what their run says.

use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

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
    (12, "scope_writes", include_str!("../../migrations/0012_scope_writes.sql")),
    (13, "session_counts", include_str!("../../migrations/0013_session_counts.sql")),
];

/// What runs the files; `text` makes of each what a database takes. To be run inside a transaction that keeps others out.
pub(super) fn migrator(migrations: Migrations<'_>, text: fn(&'static str) -> SqlStr) -> Migrator {
    let migration = |&(version, name, file): &(i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text(file), false)
    };
    let mut migrator = Migrator::with_migrations(migrations.iter().map(migration).collect());
    migrator.set_locking(false);
    migrator
}

/// Why they did not run.
pub(super) fn refused(error: MigrateError, migrations: Migrations<'_>) -> OpenError {
    let known = migrations.iter().map(|&(version, ..)| version).max().unwrap_or_default();
    match error {
        MigrateError::VersionMissing(found) if found > known => OpenError::NewerSchema { found, known },
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
            OpenError::ForeignSchema(version)
        }
        other => OpenError::Migrate(other),
    }
}
