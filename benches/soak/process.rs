//! The program, on one database over all its starts.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::super::Result;

/// Caches that are full before the memory is watched, since every write makes other keys of them; and fewer slots and places
/// to wait than workers, so that some requests are shed.
const SETTINGS: [(&str, &str); 7] = [
    ("TOOLRACK_CACHE_CATALOGS_BYTES", "8388608"),
    ("TOOLRACK_CACHE_VIEWS_BYTES", "4194304"),
    ("TOOLRACK_CACHE_VECTORS_BYTES", "4194304"),
    ("TOOLRACK_CACHE_ANSWERS_BYTES", "524288"),
    ("TOOLRACK_CACHE_SESSIONS", "300"),
    ("TOOLRACK_LIMITS_CONCURRENT_REQUESTS", "8"),
    ("TOOLRACK_LIMITS_WAITING_REQUESTS", "6"),
];

pub(crate) struct Service {
    child: Child,
    url: String,
    status: PathBuf,
}

impl Service {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--database-url"]);
        command.arg(format!("sqlite://{}", folder.join("toolrack.db").display())).env_clear();
        command.env("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").env("TOOLRACK_LOG_LEVEL", "off");
        command.envs(SETTINGS);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let url =
            line.trim_end().strip_prefix("listening on ").ok_or("the program did not start")?.to_owned();
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        Ok(Self { child, url, status })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn resident_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(&self.status)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory figure")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // An error means that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
