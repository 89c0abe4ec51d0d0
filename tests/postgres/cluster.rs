//! One PostgreSQL server for the tests of a process, which ends with it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::Connection as _;

/// Where the server is reached, a database's name to be appended; and what keeps it running.
struct Cluster {
    url: String,
    _server: Child,
}

static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(start);

fn start() -> Option<Cluster> {
    let mut server = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres/run"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    if url.is_empty() {
        missing(&server.wait().unwrap());
        return None;
    }
    Some(Cluster { url: url.trim_end().to_owned(), _server: server })
}

fn missing(status: &ExitStatus) {
    assert_eq!(status.code(), Some(3), "PostgreSQL does not start");
    let required = std::env::var_os("TOOLRACK_REQUIRE_POSTGRES").is_some();
    assert!(!required, "PostgreSQL is not installed (Debian: apt-get install postgresql)");
    eprintln!("PostgreSQL is not installed: nothing is tested on it");
}

/// The URL of a database of the server; `None` where PostgreSQL is not installed.
pub(crate) fn url(database: &str) -> Option<String> {
    CLUSTER.as_ref().map(|cluster| format!("{}{database}", cluster.url))
}

/// Makes a database, as a copy of another or an empty one.
pub(crate) async fn create(name: &str, template: &str) {
    let mut connection = sqlx::PgConnection::connect(&url("postgres").unwrap()).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
}

/// A name that no other database of the server has.
pub(crate) fn new_name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("test{}", MADE.fetch_add(1, Ordering::Relaxed))
}
