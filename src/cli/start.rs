//! Putting the parts together: database, master key, endpoint client, service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::Failure;
use crate::config::{DatabaseCheck, Settings};
use crate::core::ranking;
use crate::core::rate::KeyRate;
use crate::mcp::{McpClient, NoToolSource, ToolSource};
use crate::rerank::{AddressPolicy, HttpReranker, NoReranker, Reranker};
use crate::service::{AuditLimits, CacheLimits, KeyLimits, Limits, Parts, Toolrack};
use crate::store::{
    Check, KeyFileRotation, MasterKey, MasterKeyError, Observed, Place, PostgresStore, ServeLock,
    SqliteOptions, SqliteStore, Store,
};
use crate::telemetry;

const MS_PER_DAY: i64 = 86_400_000;

/// A service with what it stands on.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) service: Toolrack,
    pub(super) store: Arc<dyn Store>,
    pub(super) database: Place,
    /// Held by the one process that serves a database file.
    _lock: Option<ServeLock>,
}

impl Started {
    /// Writes what is buffered and lets go of the database.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let flushed = self.service.flush().await;
        // Also when there is no room for ages and counters: what is in the log belongs into the file.
        self.store.close().await.map_err(Failure::new)?;
        flushed.map_err(|error| {
            Failure::Failed(format!(
                "last uses and counters since the last flush could not be written: {error}"
            ))
        })
    }
}

/// Opens what `serve` needs; another process that serves the same file is waited for, then refused.
pub(super) async fn open_served(settings: &Settings) -> Result<Started, Failure> {
    let database = place(settings)?;
    let lock = match &database {
        Place::File(file) => Some(ServeLock::acquire(file).await.map_err(Failure::new)?),
        Place::Server(_) => None,
    };
    open(settings, database, lock).await
}

/// Where the settings keep the state.
pub(super) fn place(settings: &Settings) -> Result<Place, Failure> {
    Place::parse(settings.database.url.expose()).map_err(Failure::new)
}

/// Opens what a command beside a running service needs.
pub(super) async fn open_beside(settings: &Settings) -> Result<Started, Failure> {
    open(settings, place(settings)?, None).await
}

async fn open(settings: &Settings, database: Place, lock: Option<ServeLock>) -> Result<Started, Failure> {
    // Beside a running service, that one has looked at the file.
    let check = if lock.is_some() { check(settings) } else { Check::Off };
    let secrets = &settings.secrets;
    if matches!(database, Place::Server(_)) && secrets.master_key.is_none() && secrets.key_file.is_none() {
        return Err(Failure::Failed(SHARED_KEY.to_owned()));
    }
    let store = open_store(settings, &database, check).await?;
    let master_key = master_key(settings, &database)?;
    match master_key.check(&*store).await {
        Ok(()) => {}
        // One wrong setting must not take the rest down: only sealed secrets cannot be read.
        Err(error @ MasterKeyError::Wrong(_)) => tracing::error!(%error, "stored secrets cannot be used"),
        Err(error) => return Err(Failure::new(error)),
    }
    let addresses = AddressPolicy {
        allow_private: settings.rerank.allow_private,
        allowed_hosts: settings.rerank.allowed_hosts.clone(),
    };
    let limits = Limits {
        tools_per_catalog: settings.limits.tools_per_catalog,
        tool_bytes: settings.limits.tool_bytes,
        depth: settings.limits.depth,
        query_chars: settings.limits.query_chars,
        queries: settings.limits.queries,
        names: settings.limits.names,
        calls: settings.limits.calls,
        session_ttl: settings.session.ttl,
        request_timeout: settings.limits.request_timeout,
        sessions: settings.limits.sessions_per_user,
        keys: KeyLimits {
            rate: KeyRate {
                requests_per_second: Some(settings.limits.requests_per_second),
                burst: Some(settings.limits.burst),
                rerank_per_minute: Some(settings.limits.rerank_per_minute),
            },
            scopes: settings.limits.scopes_per_key,
        },
        audit: AuditLimits {
            entries: settings.audit.max_entries,
            age_ms: i64::from(settings.audit.days) * MS_PER_DAY,
        },
        mcp_timeout: settings.mcp.timeout,
    };
    let caches = CacheLimits {
        catalogs_bytes: settings.cache.catalogs_bytes,
        views_bytes: settings.cache.views_bytes,
        vectors_bytes: settings.cache.vectors_bytes,
        answers_bytes: settings.cache.answers_bytes,
        sessions: settings.cache.sessions,
    };
    // The first search should not wait for it, nor should the start.
    drop(tokio::task::spawn_blocking(ranking::prepare));
    let reranker = reranker(&addresses);
    let tool_source = tool_source(&addresses, settings);
    let parts =
        Parts { store: Arc::clone(&store), reranker, tool_source, addresses, master_key, limits, caches };
    let service = Toolrack::new(parts);
    service.read_clock().await.map_err(Failure::new)?;
    Ok(Started { service, store, database, _lock: lock })
}

/// How the settings want the file to be looked at.
fn check(settings: &Settings) -> Check {
    match settings.database.check {
        DatabaseCheck::Quick => Check::Quick,
        DatabaseCheck::Full => Check::Full,
        DatabaseCheck::Off => Check::Off,
    }
}

async fn open_store(settings: &Settings, database: &Place, check: Check) -> Result<Arc<dyn Store>, Failure> {
    let observe = |what: &Observed<'_>| match what {
        Observed::Committed(group) => telemetry::committed(group.waited, group.took),
        Observed::ReadWaited(waited) => telemetry::read_waited(*waited),
    };
    match database {
        Place::File(file) => {
            let options = SqliteOptions { check, max_bytes: settings.database.max_bytes };
            let store = SqliteStore::open_with(file, options, observe).await.map_err(Failure::new)?;
            Ok(Arc::new(store))
        }
        Place::Server(server) => {
            Ok(Arc::new(PostgresStore::connect(server, observe).await.map_err(Failure::new)?))
        }
    }
}

/// Opens the rows alone, for work on a database that nobody serves meanwhile.
pub(super) async fn open_store_alone(
    settings: &Settings,
    database: &Place,
) -> Result<Arc<dyn Store>, Failure> {
    open_store(settings, database, check(settings)).await
}

/// Where the master key stands that the settings do not hold.
pub(super) fn key_file(settings: &Settings, database: &Path) -> PathBuf {
    settings.secrets.key_file.clone().unwrap_or_else(|| {
        let mut file = database.as_os_str().to_owned();
        file.push(".key");
        PathBuf::from(file)
    })
}

/// What is to be done where several processes have to open each other's secrets.
pub(super) const SHARED_KEY: &str = "a database of PostgreSQL is shared by processes, which all need the same master key: set \
     secrets.master_key (TOOLRACK_SECRETS_MASTER_KEY) to 64 hexadecimal digits, for example from `openssl rand -hex 32`";

/// The key of the settings or of its file, with those of before that are still named.
fn master_key(settings: &Settings, database: &Place) -> Result<MasterKey, Failure> {
    let key = match (&settings.secrets.master_key, database) {
        (Some(key), _) => MasterKey::from_setting(key.expose_secret()).map_err(Failure::new)?,
        // One that is there was put there by whoever wrote the settings; made here, it would be this process's own.
        (None, Place::Server(_)) => {
            let file = settings.secrets.key_file.as_ref();
            let file = file.ok_or_else(|| Failure::Failed(SHARED_KEY.to_owned()))?;
            MasterKey::load(file).map_err(Failure::new)?
        }
        (None, Place::File(database)) => {
            let file = key_file(settings, database);
            let key = MasterKey::load_or_create(&file).map_err(Failure::new)?;
            match KeyFileRotation::new(&file).old_key().map_err(Failure::new)? {
                Some(old) => key.with_previous(old),
                None => key,
            }
        }
    };
    with_previous_setting(settings, key)
}

/// A key, which opens also what the key of before in the settings sealed.
pub(super) fn with_previous_setting(settings: &Settings, key: MasterKey) -> Result<MasterKey, Failure> {
    match &settings.secrets.previous_master_key {
        Some(old) => {
            Ok(key.with_previous(MasterKey::from_setting(old.expose_secret()).map_err(Failure::new)?))
        }
        None => Ok(key),
    }
}

/// The client for endpoints; without one (a system without certificates) the service runs with keywords alone.
fn reranker(addresses: &AddressPolicy) -> Arc<dyn Reranker> {
    // A second installation answers with an error that means it is there already.
    drop(rustls::crypto::ring::default_provider().install_default());
    match HttpReranker::new(addresses.clone()) {
        Ok(client) => Arc::new(client),
        Err(error) => {
            tracing::error!(%error, "no client for rerank endpoints could be made; keywords rank");
            Arc::new(NoReranker)
        }
    }
}

/// The client for MCP servers. A crypto provider was installed for the endpoints' one.
fn tool_source(addresses: &AddressPolicy, settings: &Settings) -> Arc<dyn ToolSource> {
    match McpClient::new(addresses.clone(), settings.mcp.allow_commands.clone()) {
        Ok(client) => Arc::new(client),
        Err(error) => {
            tracing::error!(%error, "no client for MCP servers could be made; none can be read");
            Arc::new(NoToolSource)
        }
    }
}

/// Brings a database to the present schema.
pub(super) async fn migrate(settings: &Settings) -> Result<Place, Failure> {
    let database = place(settings)?;
    open_store_alone(settings, &database).await?.close().await.map_err(Failure::new)?;
    Ok(database)
}

/// A service over an empty database in a folder, with default settings.
pub(super) async fn open_demo(folder: &Path) -> Result<Started, Failure> {
    let url = format!("sqlite://{}", folder.join("demo.db").display());
    let sources =
        crate::config::Sources { file: None, env: std::iter::empty(), flags: vec![("database.url", url)] };
    let (settings, _) = Settings::load(sources).map_err(Failure::new)?;
    open_served(&settings).await
}
