//! A PostgreSQL server of a test's own, which does what it is told.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server; it ends with this value.
pub(crate) struct OwnServer {
    /// The server ends when this is closed.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    script: Child,
    url: String,
}

impl OwnServer {
    /// Starts one; `None` where PostgreSQL is not installed, if that may be.
    pub(crate) fn start() -> Option<Self> {
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres/run"))
            // So that the log of writes goes on where a file of a table does not.
            .arg("--wal-segsize=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = script.stdin.take();
        let mut answers = BufReader::new(script.stdout.take().unwrap());
        let mut url = String::new();
        answers.read_line(&mut url).unwrap();
        if url.is_empty() {
            assert_eq!(script.wait().unwrap().code(), Some(3), "PostgreSQL does not start");
            let required = std::env::var_os("TOOLRACK_REQUIRE_POSTGRES").is_some();
            assert!(!required, "PostgreSQL is not installed (Debian: apt-get install postgresql)");
            return None;
        }
        Some(Self { commands, answers, script, url: url.trim_end().to_owned() })
    }

    /// Its database "postgres".
    pub(crate) fn url(&self) -> String {
        format!("{}postgres", self.url)
    }

    /// A command of `tests/postgres/run`, until it is done.
    pub(crate) fn tell(&mut self, command: &str) {
        tokio::task::block_in_place(|| {
            writeln!(self.commands.as_mut().unwrap(), "{command}").unwrap();
            let mut answer = String::new();
            self.answers.read_line(&mut answer).unwrap();
            assert_eq!(answer, "done\n", "{command}");
        });
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.commands.take());
        drop(self.script.wait());
    }
}
