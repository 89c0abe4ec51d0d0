//! `keys`: making, listing, revoking and rotating keys on the database, beside a service that may be running.
//!
//! Standard output carries a new key alone, so that it can be piped to where it is needed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::ExposeSecret as _;

use super::rotate_master::{RotateMasterArgs, rotate_master};
use super::start::open_beside;
use super::{Failure, SettingArgs, print_line};
use crate::config::Settings;
use crate::core::keys::{Bindings, KeyId, Pattern, Role};
use crate::core::rate::KeyRate;
use crate::core::selector::Selector;
use crate::service::{
    Actor, DEFAULT_OVERLAP_SECONDS, Error, KeyCreated, KeyDocument, KeyListQuery, NewKey, Toolrack,
};

/// Keys that are read at once.
const PAGE: u32 = 200;

const SECONDS_PER_DAY: u64 = 86_400;

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key; it is printed this once.
    Create(CreateArgs),
    /// Print all keys, one per line, without their secrets.
    List {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Revoke a key: the next request with it is refused.
    Revoke {
        /// The id: what stands between the first two `_` of the key.
        id: String,
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Make a key of the same rights; the old one is accepted a while longer.
    Rotate {
        /// The id: what stands between the first two `_` of the key.
        id: String,
        /// How long the old key is accepted beside the new one.
        #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_OVERLAP_SECONDS)]
        overlap_seconds: u64,
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Seal stored secrets with another master key, on a database that nobody serves meanwhile.
    RotateMaster(RotateMasterArgs),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
struct CreateArgs {
    /// For people: what the key is for.
    #[arg(long)]
    name: String,
    /// admin, setup, agent or metrics.
    #[arg(long)]
    role: String,
    /// A user that it covers: a name, `prefix*`, or `*` for all. May be given several times.
    #[arg(long = "user", value_name = "USER")]
    users: Vec<String>,
    /// A project that it covers, written alike. May be given several times.
    #[arg(long = "project", value_name = "PROJECT")]
    projects: Vec<String>,
    /// A toolset that an agent's key is limited to. May be given several times.
    #[arg(long = "toolset", value_name = "NAME")]
    toolsets: Vec<String>,
    /// Tools that are the only ones to be seen under an agent's key: `name`, `prefix*` or `@group`. May be given several times.
    #[arg(long, value_name = "TOOLS")]
    allow: Vec<String>,
    /// Tools that are not to be seen under an agent's key. May be given several times.
    #[arg(long, value_name = "TOOLS")]
    deny: Vec<String>,
    /// Requests per second that its holder may send, where it is not as the settings say; 0: no limit.
    #[arg(long, value_name = "NUMBER")]
    requests_per_second: Option<u32>,
    /// Requests that may come at once.
    #[arg(long, value_name = "NUMBER")]
    burst: Option<u32>,
    /// Searches per minute that may ask a rerank or embedding endpoint, where it is not as the settings say; 0: no limit.
    #[arg(long, value_name = "NUMBER")]
    rerank_per_minute: Option<u32>,
    /// Without it the key does not expire.
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u64>,
    #[command(flatten)]
    settings: SettingArgs,
}

impl KeysArgs {
    /// The settings, and what to do on their database. What is misspelt makes none.
    pub(super) fn read(self) -> Result<(Settings, Task), Failure> {
        let id = |text: &str| text.parse().map_err(|error| Failure::Failed(format!("`{text}`: {error}")));
        let (settings, task) = match self.command {
            KeysCommand::Create(args) => {
                let settings = args.settings.load(false)?;
                return Ok((settings, Task::Service(ServiceTask::Create(args.read()?))));
            }
            KeysCommand::List { settings } => (settings, ServiceTask::List),
            KeysCommand::Revoke { id: text, settings } => (settings, ServiceTask::Revoke(id(&text)?)),
            KeysCommand::Rotate { id: text, overlap_seconds, settings } => {
                (settings, ServiceTask::Rotate(id(&text)?, overlap_seconds))
            }
            KeysCommand::RotateMaster(args) => return args.read(),
        };
        Ok((settings.load(false)?, Task::Service(task)))
    }
}

/// Does it and prints the result.
pub(super) async fn keys(settings: Settings, task: Task) -> Result<(), Failure> {
    let task = match task {
        Task::RotateMaster(from) => return rotate_master(settings, from).await,
        Task::Service(task) => task,
    };
    let started = open_beside(&settings).await?;
    let done = task.run(&started.service).await;
    started.close().await?;
    done
}

/// A command whose arguments are understood.
pub(super) enum Task {
    /// On a database that may be served.
    Service(ServiceTask),
    /// With the file that holds the new master key, if there is one.
    RotateMaster(Option<PathBuf>),
}

/// What the service does with keys.
pub(super) enum ServiceTask {
    Create(NewKey),
    List,
    Revoke(KeyId),
    Rotate(KeyId, u64),
}

impl CreateArgs {
    fn read(self) -> Result<NewKey, Failure> {
        let role = Role::parse(&self.role).ok_or_else(|| {
            let known = Role::ALL.map(Role::as_str).join(", ");
            Failure::Failed(format!("`{}` is not a role; there are {known}", self.role))
        })?;
        let bindings = Bindings {
            users: read_all(&self.users, Pattern::parse)?,
            projects: read_all(&self.projects, Pattern::parse)?,
            toolsets: self.toolsets,
            allow: read_all(&self.allow, Selector::parse)?,
            deny: read_all(&self.deny, Selector::parse)?,
            rate: KeyRate {
                requests_per_second: self.requests_per_second,
                burst: self.burst,
                rerank_per_minute: self.rerank_per_minute,
            },
        };
        bindings.check(role).map_err(|error| Failure::Failed(error.detail))?;
        let expires_in_seconds = self.expires_in_days.map(|days| days.saturating_mul(SECONDS_PER_DAY));
        Ok(NewKey { name: self.name, role, bindings, expires_in_seconds })
    }
}

fn read_all<T, E: std::fmt::Display>(
    texts: &[String],
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, Failure> {
    let read = |text: &String| read(text).map_err(|error| Failure::Failed(format!("`{text}`: {error}")));
    texts.iter().map(read).collect()
}

impl ServiceTask {
    async fn run(self, service: &Toolrack) -> Result<(), Failure> {
        let actor = Actor::program();
        match self {
            Self::Create(new) => print_key(&service.create_key(&actor, new).await.map_err(told)?),
            Self::Rotate(id, overlap) => {
                print_key(&service.rotate_key(&actor, id, overlap).await.map_err(told)?)
            }
            Self::Revoke(id) => {
                service.revoke_key(&actor, id).await.map_err(told)?;
                print_line(&format!("the key {id} is revoked"))
            }
            Self::List => list(service).await,
        }
    }
}

fn told(error: Error) -> Failure {
    Failure::new(error)
}

fn print_key(created: &KeyCreated) -> Result<(), Failure> {
    let KeyDocument { id, role, name, .. } = &created.document;
    eprintln!("toolrack: key {id} ({role}, {name}); it is shown this once");
    print_line(created.key.expose_secret())
}

async fn list(service: &Toolrack) -> Result<(), Failure> {
    let mut cursor = None;
    loop {
        let page = service.list_keys(KeyListQuery { cursor, limit: PAGE }).await.map_err(told)?;
        page.keys.iter().try_for_each(|key| print_line(&line(key)?))?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// One key as a line of JSON, as the API shows it.
fn line(key: &KeyDocument) -> Result<String, Failure> {
    serde_json::to_string(key).map_err(Failure::new)
}
