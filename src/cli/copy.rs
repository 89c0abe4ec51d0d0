//! `copy`: all state into another database.

use std::time::Duration;

use clap::Args;

use super::{Failure, print_line};
use crate::store::{self, Place, ServeLock};

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The database that holds the state; no process may serve it meanwhile.
    #[arg(long, value_name = "URL")]
    from: String,
    /// An empty database, or a file that does not exist yet.
    #[arg(long, value_name = "URL")]
    to: String,
}

/// Copies, and says what is not in the copy.
pub(super) async fn copy(args: CopyArgs) -> Result<(), Failure> {
    let place = |url: &str| Place::parse(url).map_err(Failure::new);
    let (from, to) = (place(&args.from)?, place(&args.to)?);
    if matches!(&from, Place::File(file) if !file.is_file()) {
        return Err(Failure::Failed(format!("there is no database at {from}")));
    }
    let mut locks = Vec::new();
    for place in [&from, &to] {
        if let Place::File(file) = place {
            locks.push(ServeLock::acquire_within(file, Duration::ZERO).await.map_err(Failure::new)?);
        }
    }
    let rows = store::copy(&from, &to).await.map_err(Failure::new)?;
    print_line(&format!("{to} has all {rows} rows of {from}"))?;
    eprintln!(
        "toolrack: the master key is not in it: give the processes on {to} the key of {from}, as secrets.master_key or as the \
         key file"
    );
    Ok(())
}
