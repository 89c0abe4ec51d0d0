//! `serve`: the service from its start to its last flush.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::start::{Started, open_served};
use super::{Failure, print_line};
use crate::config::{Settings, admin_key_in_file};
use crate::core::keys::KeyDigest;
use crate::core::rate::Rate;
use crate::core::slots::SlotLimits;
use crate::http::auth::Auth;
use crate::http::hygiene::Origins;
use crate::http::layers::{HttpContext, HttpLimits};
use crate::http::server::ServerLimits;
use crate::service::Toolrack;
use crate::store::{Place, read_secret_file};
use crate::telemetry::Traces;
use crate::{demo, http, telemetry, ui};

/// File descriptors that connections leave to the database, to calls of endpoints and to programs that are read.
const FILES_OF_ITS_OWN: usize = 256;
/// The last traces have so long to be sent, also when requests took all of the time to drain.
const LAST_TRACES: Duration = Duration::from_millis(500);

/// Runs the service until it is told to stop.
pub(super) async fn serve(settings: Settings) -> Result<(), Failure> {
    let traces = telemetry::start(&settings.log, &settings.tracing).map_err(Failure::new)?;
    let admin_key = admin_key(&settings)?;
    let started = open_served(&settings).await?;
    if let Place::File(file) = &started.database {
        telemetry::watch_disk(file);
    }
    let listener = bind(settings.listen).await?;
    let auth = auth(&settings, admin_key, &started.service).await?;
    let authentication = match &auth {
        Auth::None => "none",
        Auth::Keys { admin: Some(_), .. } => "admin key of the settings, stored keys",
        Auth::Keys { admin: None, .. } => "stored keys",
    };
    let address = listener.local_addr().map_err(Failure::new)?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        database = %started.database,
        authentication,
        matcher = matcher_state(&settings),
        %address,
        "started"
    );
    print_line(&format!("listening on http://{address}"))?;
    let context = HttpContext::new(http_limits(&settings), auth, Origins::new(&settings.server.cors_origins));
    telemetry::serve_at(address);
    run(started, listener, context, &settings, traces).await
}

/// The admin key that the settings hold or name.
fn admin_key(settings: &Settings) -> Result<Option<SecretString>, Failure> {
    let Some(path) = &settings.auth.key_file else { return Ok(settings.auth.admin_key.clone()) };
    let text = read_secret_file(path).map_err(Failure::new)?;
    let key = admin_key_in_file(text.expose_secret());
    key.map(Some).map_err(|form| Failure::Failed(format!("the key file {} must hold {form}", path.display())))
}

/// How requests are told apart. Where nobody could be let in, an admin key is made and shown once.
async fn auth(
    settings: &Settings,
    admin_key: Option<SecretString>,
    service: &Toolrack,
) -> Result<Auth, Failure> {
    if settings.auth.no_auth {
        return Ok(Auth::None);
    }
    let admin = admin_key.map(|key| KeyDigest::of(key.expose_secret().as_bytes()));
    if admin.is_none()
        && let Some(first) = service.first_key().await.map_err(Failure::new)?
    {
        eprintln!("admin key (shown once): {}", first.key.expose_secret());
    } else if admin.is_none() && !service.has_admin_key().await.map_err(Failure::new)? {
        tracing::warn!("no admin key is in force; `toolrack keys create --role admin` makes one");
    }
    Ok(Auth::Keys { admin, service: service.clone() })
}

/// What searches can do on this server: endpoints are set per user or project.
fn matcher_state(settings: &Settings) -> &'static str {
    if settings.rerank.allow_private {
        "keyword; endpoints per scope, private addresses allowed"
    } else {
        "keyword; endpoints per scope"
    }
}

fn http_limits(settings: &Settings) -> HttpLimits {
    let admin_rate = settings.limits.admin_requests_per_second;
    HttpLimits {
        body_bytes: settings.limits.body_bytes,
        json_depth: settings.limits.depth,
        request_timeout: settings.limits.request_timeout,
        slots: SlotLimits {
            running: settings.limits.concurrent_requests,
            waiting: settings.limits.waiting_requests,
        },
        slow_request: settings.log.slow_request,
        admin_rate: (admin_rate > 0).then(|| Rate::new(admin_rate, 1, admin_rate.saturating_mul(2))),
    }
}

/// Connections as the settings say, but no more than leave file descriptors for the database and for calls of endpoints.
fn server_limits(settings: &Settings) -> ServerLimits {
    let wanted = settings.limits.connections;
    let files = raised_file_limit().and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    let connections = wanted.min(files.saturating_sub(FILES_OF_ITS_OWN).max(1));
    if connections < wanted {
        tracing::warn!(wanted, connections, "the limit of open files leaves room for fewer connections");
    }
    ServerLimits { connections, drain: settings.limits.drain }
}

/// Takes as many open files as the operating system gives to this process; nothing: no limit.
fn raised_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Failure::Failed(format!("cannot listen on {address}: {error}")))
}

/// Serves until SIGTERM or an interrupt, drains, flushes and closes.
async fn run(
    started: Started,
    listener: TcpListener,
    context: HttpContext,
    settings: &Settings,
    traces: Traces,
) -> Result<(), Failure> {
    let (limits, drain, flush) = (server_limits(settings), settings.limits.drain, settings.session.flush);
    let stopped = Arc::<OnceLock<Instant>>::default();
    let stop = CancellationToken::new();
    let service = started.service.clone();
    let upkeep_stop = CancellationToken::new();
    let upkeep = tokio::spawn({
        let (service, stop) = (service.clone(), upkeep_stop.clone());
        async move { service.upkeep(flush, stop).await }
    });
    tokio::spawn({
        let (service, stop) = (service.clone(), upkeep_stop.clone());
        async move { service.keep_mcp_servers(stop).await }
    });
    tokio::spawn({
        let (service, stop) = (service.clone(), upkeep_stop.clone());
        async move { service.follow(stop).await }
    });
    tokio::spawn(telemetry::upkeep());
    tokio::spawn({
        let (stop, stopped) = (stop.clone(), Arc::clone(&stopped));
        async move {
            stop_signal().await;
            tracing::info!("stopping");
            stopped.get_or_init(Instant::now);
            stop.cancel();
        }
    });
    let served =
        http::server::serve(listener, http::app(service, context, ui::pages(), stop.clone()), stop, limits)
            .await;
    upkeep_stop.cancel();
    let upkeep = upkeep.await;
    // Whatever ended the server or its upkeep, what is buffered is written.
    let closed = started.close().await;
    let spent = stopped.get().map_or(Duration::ZERO, Instant::elapsed);
    traces.close(drain.saturating_sub(spent).max(LAST_TRACES)).await;
    closed?;
    upkeep.map_err(Failure::new)?;
    served.map_err(Failure::new)
}

/// Waits for SIGTERM or SIGINT.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}

/// Leaves the demo's service running, without authentication, and says how to talk to it.
pub(super) async fn serve_demo(started: Started, listen: SocketAddr) -> Result<(), Failure> {
    if !listen.ip().is_loopback() {
        return Err(Failure::Failed(format!(
            "the demo has no authentication: {listen} is not a loopback address"
        )));
    }
    let listener = match TcpListener::bind(listen).await {
        Ok(listener) => listener,
        Err(_) => bind(SocketAddr::new(listen.ip(), 0)).await?,
    };
    let address = listener.local_addr().map_err(Failure::new)?;
    print_line(&demo::farewell(address))?;
    let (settings, _) =
        Settings::load(crate::config::Sources { file: None, env: std::iter::empty(), flags: Vec::new() })
            .map_err(Failure::new)?;
    let context = HttpContext::new(http_limits(&settings), Auth::None, Origins::default());
    run(started, listener, context, &settings, Traces::default()).await
}
