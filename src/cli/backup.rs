//! `backup`: the database as a file, beside a service that may be running.

use std::path::PathBuf;

use clap::Args;

use super::start::{key_file, place};
use super::{Failure, SettingArgs, print_line};
use crate::store::{self, Backup, Place};

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The file to make; one that exists is never overwritten.
    file: PathBuf,
    #[command(flatten)]
    settings: SettingArgs,
}

/// Makes the file and says what it is, and what is not in it.
pub(super) async fn backup(args: BackupArgs) -> Result<(), Failure> {
    let settings = args.settings.load(false)?;
    let database = match place(&settings)? {
        Place::File(file) => file,
        Place::Server(server) => {
            return Err(Failure::Failed(format!(
                "{server} is backed up with the server's own tools: pg_dump --format=custom --file={} DATABASE (docs/backup.md)",
                args.file.display()
            )));
        }
    };
    let Backup { bytes, schema } = store::backup(&database, &args.file).await.map_err(Failure::new)?;
    print_line(&format!(
        "{} is a backup of {}: {bytes} bytes, schema version {schema}, checked and on the disk",
        args.file.display(),
        database.display()
    ))?;
    let key = match &settings.secrets.master_key {
        Some(_) => "secrets.master_key of the settings".to_owned(),
        None => key_file(&settings, &database).display().to_string(),
    };
    eprintln!(
        "toolrack: the master key is not in it: keep {key} too, apart from the backup; without it the stored secrets of \
         endpoints read as not set"
    );
    Ok(())
}
