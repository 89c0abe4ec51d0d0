//! `keys rotate-master`: everything sealed with another master key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use secrecy::ExposeSecret as _;

use super::keys::Task;
use super::start::{SHARED_KEY, key_file, open_store_alone, place, with_previous_setting};
use super::{Failure, SettingArgs, print_line};
use crate::config::Settings;
use crate::store::{KeyFileRotation, MasterKey, Place, Resealed, ServeLock, Store, reseal_all};

/// Arguments of `keys rotate-master`.
#[derive(Debug, Args)]
pub(super) struct RotateMasterArgs {
    /// A private file with the new key, 64 hexadecimal digits; without it a random one is made.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingArgs,
}

impl RotateMasterArgs {
    pub(super) fn read(self) -> Result<(Settings, Task), Failure> {
        Ok((self.settings.load(false)?, Task::RotateMaster(self.from)))
    }
}

/// What is to be sealed with, and where that key stands.
struct Plan {
    /// Opens what is sealed now, too.
    key: MasterKey,
    place: String,
    /// What has to be cleaned up when all is sealed.
    files: Option<KeyFileRotation>,
}

/// Changes the key, or ends a change that was interrupted.
pub(super) async fn rotate_master(settings: Settings, from: Option<PathBuf>) -> Result<(), Failure> {
    let database = place(&settings)?;
    // A service knows the keys that it started with: what another one sealed would read as not set.
    let _lock = match &database {
        Place::File(file) if !file.is_file() => {
            return Err(Failure::Failed(format!("there is no database at {database}")));
        }
        Place::File(file) => {
            Some(ServeLock::acquire_within(file, Duration::ZERO).await.map_err(Failure::new)?)
        }
        // Those that run were started with both keys before this, which nobody can see from here.
        Place::Server(_) => None,
    };
    // Before any key file is touched, the database must be one that can be written.
    let store = open_store_alone(&settings, &database).await?;
    let done = rotate(&settings, &database, &*store, from.as_deref()).await;
    // What was sealed anew is on the disk from here on, also when the power fails: only then the old key may go.
    store.close().await.map_err(Failure::new)?;
    let Done { plan, resealed } = done?;
    if let Some(files) = &plan.files {
        files.end().map_err(Failure::new)?;
    }
    tell(&settings, &plan, &resealed)
}

/// A change whose old key is still there.
struct Done {
    plan: Plan,
    resealed: Resealed,
}

async fn rotate(
    settings: &Settings,
    database: &Place,
    store: &dyn Store,
    from: Option<&Path>,
) -> Result<Done, Failure> {
    let plan = match (&settings.secrets.master_key, database) {
        (Some(key), _) => of_settings(settings, key.expose_secret(), store, from).await?,
        (None, Place::File(file)) => of_file(settings, &key_file(settings, file), store, from).await?,
        (None, Place::Server(_)) => return Err(Failure::Failed(SHARED_KEY.to_owned())),
    };
    let resealed = reseal_all(store, &plan.key).await.map_err(Failure::new)?;
    Ok(Done { plan, resealed })
}

/// Says what was done.
fn tell(settings: &Settings, plan: &Plan, resealed: &Resealed) -> Result<(), Failure> {
    let Resealed { resealed, current, unreadable } = resealed;
    if *unreadable > 0 {
        eprintln!(
            "toolrack: {unreadable} stored secrets cannot be read with any known key and stay as they are"
        );
    }
    print_line(&format!(
        "{} secrets are sealed with the master key of {} ({resealed} of them now); keep a copy of it apart from the database",
        resealed + current,
        plan.place
    ))?;
    eprintln!(
        "toolrack: keys in drafts of the setup flow have to be entered again, and browsers sign in again"
    );
    if settings.secrets.previous_master_key.is_some() {
        eprintln!(
            "toolrack: nothing needs secrets.previous_master_key any more; take it out of the settings"
        );
    }
    Ok(())
}

/// The operator has put both keys into the settings.
async fn of_settings(
    settings: &Settings,
    key: &str,
    store: &dyn Store,
    from: Option<&Path>,
) -> Result<Plan, Failure> {
    if from.is_some() || settings.secrets.previous_master_key.is_none() {
        return Err(Failure::Failed(
            "the master key stands in the settings: set the new one as secrets.master_key and the present one as \
             secrets.previous_master_key, then run this without --from"
                .to_owned(),
        ));
    }
    let key = MasterKey::from_setting(key).map_err(Failure::new)?;
    let key = with_previous_setting(settings, key)?;
    key.check(store).await.map_err(Failure::new)?;
    Ok(Plan { key, place: "the settings".to_owned(), files: None })
}

/// The key file gets a new key, unless a change is under way already.
async fn of_file(
    settings: &Settings,
    file: &Path,
    store: &dyn Store,
    from: Option<&Path>,
) -> Result<Plan, Failure> {
    let new = match from {
        Some(from) => MasterKey::load(from).map_err(Failure::new)?,
        None => MasterKey::random(),
    };
    let files = KeyFileRotation::new(file);
    let place = file.display().to_string();
    let mut present = with_previous_setting(settings, MasterKey::load(file).map_err(Failure::new)?)?;
    if let Some(old) = files.old_key().map_err(Failure::new)? {
        present = present.with_previous(old);
    }
    present.check(store).await.map_err(Failure::new)?;
    if present.has_previous() {
        eprintln!(
            "toolrack: a change of the master key was under way and is ended; run this again for another key"
        );
        return Ok(Plan { key: present, place, files: Some(files) });
    }
    // The old key may have been put aside just before an interruption.
    files.end().map_err(Failure::new)?;
    let key = files.begin(present, new).map_err(Failure::new)?;
    Ok(Plan { key, place, files: Some(files) })
}
