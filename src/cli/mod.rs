//! The command line: what there is to run, and how a failure shows.
//!
//! Standard output carries results only (of `serve`: the address); logs and errors go to standard error. Exit status 0
//! is success, 1 a failure, 2 wrong usage.

mod backup;
mod copy;
mod eval;
mod import;
mod keys;
mod rotate_master;
mod serve;
mod start;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Settings, Sources};
use crate::demo;
use crate::http::openapi;

/// What `--help` says of the end of a command.
const EXIT_STATUS: &str = "Results go to standard output, messages and logs to standard error. Exit status: 0 done, 1 failed, 2 wrong \
                           usage.";

/// Keeps LLM agents' tool lists small without hiding what they can do.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_STATUS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve {
        #[command(flatten)]
        settings: SettingArgs,
        /// Accept every request without a key. Only on a loopback address.
        #[arg(long)]
        no_auth: bool,
    },
    /// Show the main job on an embedded sample catalog and a temporary database; nothing to set up.
    Demo {
        /// Leave the service running afterwards, without authentication, on a loopback address.
        #[arg(long)]
        serve: bool,
        /// Address for `--serve`; another port is taken when this one is in use.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8480")]
        listen: SocketAddr,
    },
    /// Put a list of tools, in any accepted shape, into the catalog of a user or project.
    Import(import::ImportArgs),
    /// Bring the database to the schema of this version.
    Migrate {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Print the OpenAPI document.
    Openapi,
    /// Print every effective setting with its origin; fails when one is wrong.
    CheckConfig {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Measure how well searches find the right tools of a set, on a temporary database.
    Eval(Box<eval::EvalArgs>),
    /// Make, list, revoke and rotate keys, also beside a running service, which takes them over within a second.
    Keys(keys::KeysArgs),
    /// Copy the database to a new file, also while a service runs. The master key is not in it.
    Backup(backup::BackupArgs),
    /// Copy all state into another, empty database, while no service runs: from SQLite to PostgreSQL or back.
    Copy(copy::CopyArgs),
}

/// Settings that most commands take. Every other one comes from the file or a variable.
#[derive(Debug, Args)]
struct SettingArgs {
    /// Settings file; deploy/toolrack.default.toml shows all settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, for example 127.0.0.1:8480; port 0 takes any free one.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where the state is kept, for example sqlite://toolrack.db or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

/// Why a command ended without its result.
#[derive(Debug)]
enum Failure {
    /// Exit status 1.
    Failed(String),
}

impl Failure {
    fn new(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs a command to its end.
pub fn run(cli: Cli) -> ExitCode {
    match run_command(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            eprintln!("toolrack: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve { settings, no_auth } => {
            let settings = settings.load(no_auth)?;
            settings.check_access().map_err(Failure::new)?;
            block_on(settings.server.workers, serve::serve(settings))
        }
        Command::Demo { serve, listen } => block_on(0, run_demo(serve.then_some(listen))),
        Command::Import(args) => {
            let settings = args.settings.load(false)?;
            block_on(0, import::import(settings, args))
        }
        Command::Migrate { settings } => {
            let settings = settings.load(false)?;
            block_on(0, async move {
                let database = start::migrate(&settings).await?;
                print_line(&format!("{database} has the schema of toolrack {}", env!("CARGO_PKG_VERSION")))
            })
        }
        Command::Openapi => print_line(&openapi::document().to_pretty_json().map_err(Failure::new)?),
        Command::CheckConfig { settings } => {
            let settings = settings.load(false)?;
            settings.origins().iter().try_for_each(|setting| {
                print_line(&format!("{} = {}  # {}", setting.key, setting.value, setting.origin))
            })?;
            start::place(&settings).map(drop)
        }
        Command::Eval(args) => block_on(0, eval::eval(*args)),
        Command::Keys(args) => {
            let (settings, task) = args.read()?;
            block_on(0, keys::keys(settings, task))
        }
        Command::Backup(args) => block_on(0, backup::backup(args)),
        Command::Copy(args) => block_on(0, copy::copy(args)),
    }
}

async fn run_demo(listen: Option<SocketAddr>) -> Result<(), Failure> {
    let directory = std::env::temp_dir().join(format!("toolrack-demo-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(Failure::new)?;
    let result = async {
        let parts = start::open_demo(&directory).await?;
        demo::walk(&parts.service, &mut std::io::stdout()).await.map_err(Failure::new)?;
        match listen {
            Some(listen) => serve::serve_demo(parts, listen).await,
            None => parts.close().await,
        }
    }
    .await;
    // The folder holds nothing but the sample: leaving it behind would be litter, failing to remove it is no fault.
    drop(std::fs::remove_dir_all(&directory));
    result
}

impl SettingArgs {
    /// Reads all layers of settings; warnings go to standard error.
    fn load(&self, no_auth: bool) -> Result<Settings, Failure> {
        let file = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))?;
                Some((path.display().to_string(), text))
            }
            None => None,
        };
        let mut flags = Vec::new();
        flags.extend(self.listen.clone().map(|listen| ("listen", listen)));
        flags.extend(self.database_url.clone().map(|url| ("database.url", url)));
        flags.extend(no_auth.then(|| ("auth.no_auth", "true".to_owned())));
        // Names and values that are not Unicode cannot be settings of ours.
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let (settings, warnings) = Settings::load(Sources { file, env, flags }).map_err(Failure::new)?;
        warnings.iter().for_each(|warning| eprintln!("toolrack: warning: {warning}"));
        Ok(settings)
    }
}

/// Runs a future on a runtime of its own; 0 workers means one per processor.
fn block_on(workers: usize, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if workers > 0 {
        builder.worker_threads(workers);
    }
    let runtime = builder.enable_all().build().map_err(Failure::new)?;
    runtime.block_on(work)
}

/// Writes a line of results; a reader that went away is a failure, not a panic.
fn print_line(line: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::new)
}
