//! A soak: 200 tenants that ask at random for minutes while their rerank endpoint comes and goes and the program is killed
//! three times.
//!
//! Ends with an error when an answer is a 5xx that no limit explains, when something that an answer promised (a warm set,
//! a config, a catalog) is not there after a kill, or when the memory of the last tenth is not within a tenth of that of
//! the third. `cargo bench --bench soak -- [SECONDS]`, 600 by default. Linux.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use support::endpoint;
use support::process::Service;
use support::tenant::{Shared, Tenant};
use support::watch::Watch;

#[path = "soak"]
mod support {
    pub(crate) mod endpoint;
    pub(crate) mod process;
    pub(crate) mod tenant;
    pub(crate) mod watch;
}

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const TENANTS: usize = 200;
/// Tenants that ask at the same time.
const WORKERS: usize = 16;
const DEFAULT_SECONDS: u64 = 600;
/// When the program is killed, in hundredths of the time: long enough before the memory is watched, since its caches are empty
/// then.
const KILLS: [u32; 3] = [3, 6, 9];
/// When memory is compared, in tenths: in a run of ten minutes, the third and the last.
const EARLY: Range<usize> = 2..3;
const LATE: Range<usize> = 9..10;
/// By how much the later figure may be above the earlier one.
const FLAT: f64 = 1.10;

fn main() -> Result<()> {
    let argument = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let time = Duration::from_secs(argument.unwrap_or(DEFAULT_SECONDS));
    drop(rustls::crypto::ring::default_provider().install_default());
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(soak(time))
}

async fn soak(time: Duration) -> Result<()> {
    let folder = TempDir::new()?;
    let endpoint = endpoint::start().await?;
    let mut service = Service::start(folder.path())?;
    let (urls, url) = watch::channel(service.url().to_owned());
    let shared = Arc::new(Shared {
        url,
        killed: AtomicBool::new(false),
        over: AtomicBool::new(false),
        answers: Mutex::new(BTreeMap::new()),
        checked: AtomicU64::new(0),
        http: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(90)).build()?,
    });
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (shared, endpoint) = (Arc::clone(&shared), endpoint.clone());
        workers.spawn(async move { work(worker, &shared, &endpoint).await });
    }
    let started = Instant::now();
    let (mut watch, mut kills) = (Watch::new(), KILLS.as_slice());
    while started.elapsed() < time {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            Some(ended) = workers.join_next() => {
                ended??;
                return Err("a worker ended before its time".into());
            }
        }
        let share = started.elapsed().as_secs_f64() / time.as_secs_f64();
        if let Some((kill, rest)) = kills.split_first()
            && 100.0 * share >= f64::from(*kill)
        {
            kills = rest;
            shared.killed.store(true, Ordering::SeqCst);
            service.kill()?;
            service = Service::start(folder.path())?;
            shared.killed.store(false, Ordering::SeqCst);
            urls.send(service.url().to_owned())?;
        }
        watch.look(&service, &shared.http, share).await?;
    }
    shared.over.store(true, Ordering::SeqCst);
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    let (early, late) = (watch.mean(EARLY), watch.mean(LATE));
    let answers = shared.answers.lock().map_err(|_| "a worker panicked")?;
    let figures = json!({
        "seconds": time.as_secs(),
        "kills": KILLS.len() - kills.len(),
        "answers": answers.values().sum::<u64>(),
        "answers_by_status": *answers,
        "promises_checked": shared.checked.load(Ordering::Relaxed),
        "tenths": watch.document(),
        "resident_mib_early": early.round(),
        "resident_mib_late": late.round(),
    });
    writeln!(std::io::stdout(), "{figures:#}")?;
    if late > early * FLAT {
        return Err(format!("the memory is not flat: {early:.0} MiB, later {late:.0} MiB").into());
    }
    Ok(())
}

/// Asks for every sixteenth tenant in turn, and looks after its promises whenever the program was started anew.
async fn work(worker: usize, shared: &Shared, endpoint: &str) -> Result<()> {
    let mut random = StdRng::seed_from_u64(worker as u64);
    let mut url = shared.url.clone();
    let mut tenants: Vec<Tenant> = (worker..TENANTS).step_by(WORKERS).map(Tenant::new).collect();
    for tenant in &mut tenants {
        tenant.set_up(shared, endpoint).await?;
    }
    while !shared.over.load(Ordering::SeqCst) {
        let at = random.random_range(0..tenants.len());
        let arrived = match tenants.get_mut(at) {
            Some(tenant) => tenant.ask(shared, &mut random).await?,
            None => true,
        };
        if !arrived {
            url.changed().await?;
        }
        if !arrived || url.has_changed()? {
            url.mark_unchanged();
            for tenant in &mut tenants {
                tenant.check(shared).await?;
            }
        }
    }
    for tenant in &mut tenants {
        tenant.check(shared).await?;
    }
    Ok(())
}
