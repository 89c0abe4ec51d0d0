//! The databases that the suite runs on.

use tokio::sync::OnceCell;

use super::*;

#[path = "../../../tests/postgres/cluster.rs"]
mod cluster;

/// What keeps the rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// For tests that run a body many times.
    pub(super) fn all() -> Vec<Self> {
        let postgres = has_postgres().then_some(Self::Postgres);
        std::iter::once(Self::Sqlite).chain(postgres).collect()
    }
}

pub(in crate::store) fn has_postgres() -> bool {
    cluster::url("").is_some()
}

/// A store of its own on a temporary file, or in a database of its own.
pub(super) struct Fixture {
    pub(super) directory: Home,
    pub(super) store: Box<dyn Store>,
}

/// Where it is.
pub(super) enum Home {
    Folder(tempfile::TempDir),
    Database(Server),
}

impl Home {
    async fn open(&self) -> Box<dyn Store> {
        match self {
            Self::Folder(folder) => {
                Box::new(SqliteStore::open(&folder.path().join("t.db"), |_| {}).await.unwrap())
            }
            Self::Database(server) => Box::new(PostgresStore::connect(server, |_| {}).await.unwrap()),
        }
    }
}

impl Fixture {
    pub(super) async fn new(on: Backend) -> Self {
        let directory = match on {
            Backend::Sqlite => Home::Folder(tempfile::tempdir().unwrap()),
            Backend::Postgres => Home::Database(new_database().await),
        };
        let store = directory.open().await;
        Self { directory, store }
    }

    pub(super) async fn reopen(self) -> Self {
        self.store.close().await.unwrap();
        let store = self.directory.open().await;
        Self { store, ..self }
    }
}

/// A copy of an empty database with the present schema.
pub(in crate::store) async fn new_database() -> Server {
    static TEMPLATE: OnceCell<()> = OnceCell::const_new();
    let server = |name: &str| Server::parse(&cluster::url(name).unwrap()).unwrap();
    TEMPLATE
        .get_or_init(async || {
            cluster::create("rack", "template0").await;
            PostgresStore::connect(&server("rack"), |_| {}).await.unwrap().close().await.unwrap();
        })
        .await;
    let name = cluster::new_name();
    cluster::create(&name, "rack").await;
    server(&name)
}
