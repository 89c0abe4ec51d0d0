//! A command that speaks MCP over its standard input and output.
//!
//! Owns which commands may be run, what they are given, how much of their output is read, and that they end with all that
//! they have started. A command is a program on the operator's machine: nothing is run that the settings do not name.

use std::cmp::Reverse;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::fault::{McpFailure, McpFault};
use super::session::Trouble;
use crate::core::secret_args::{MASK, secrets_of};

/// What a command gets of the service's own variables.
const INHERITED: [&str; 2] = ["PATH", "HOME"];

/// Shortest secret, in bytes, that is masked in what a command says; a shorter one is part of too many words.
const LEAST_MASKED: usize = 6;

/// How long is waited for the last of what a command that ended wrote.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of standard error that is kept, in bytes.
const STDERR_BYTES: usize = 2_048;

/// Whether the settings name this command.
pub(super) fn check(command: &str, allowed: &[String]) -> Result<(), McpFailure> {
    if allowed.iter().any(|name| name == command) {
        return Ok(());
    }
    let detail = if allowed.is_empty() {
        "this service runs no commands".to_owned()
    } else {
        format!("this service runs {} and nothing else", allowed.join(", "))
    };
    Err(McpFailure::new(McpFault::CommandNotAllowed, detail))
}

/// A running command. Its whole process group is killed with this value.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Reads it.
    reader: JoinHandle<()>,
    /// What it was given that nobody reads back.
    secrets: Vec<SecretString>,
}

/// The ends of a command's pipes.
pub(super) type Pipes = (Counted<ChildStdout>, ChildStdin);

/// Starts a command. More than `most` bytes of output are [`McpFault::TooLarge`], told to `trouble`.
pub(super) fn start(
    (command, args, env): (&str, &[String], &[(String, SecretString)]),
    most: usize,
    trouble: &Trouble,
) -> Result<(Running, Pipes), McpFailure> {
    let failed = |what: &str| McpFailure::new(McpFault::CommandFailed, format!("`{command}` {what}"));
    let mut process = Command::new(command);
    process.args(args).env_clear();
    process.envs(INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    process.envs(env.iter().map(|(name, text)| (name, text.expose_secret())));
    // Not where the service stands: its database may be there.
    process.current_dir(std::env::temp_dir());
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process.process_group(0).kill_on_drop(true);
    let mut child = process.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failed("is not there"),
        io::ErrorKind::PermissionDenied => failed("may not be run"),
        _ => failed("could not be started"),
    })?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
        return Err(failed("has no pipes"));
    };
    let stderr = Arc::default();
    let reader = tokio::spawn(keep_end(errors, Arc::clone(&stderr)));
    let secrets = secrets_of(args).into_iter().map(SecretString::from);
    let secrets = secrets.chain(env.iter().map(|(_, text)| text.clone())).collect();
    let running = Running { child, group, stderr, reader, secrets };
    let stdout = Counted { inner: stdout, left: most, trouble: trouble.clone() };
    Ok((running, (stdout, stdin)))
}

impl Running {
    /// Ends the command and what it started. What it wrote to standard error goes to the fault, if it was the command that
    /// ended first.
    pub(super) async fn end(mut self, outcome: Option<McpFailure>) -> Option<McpFailure> {
        // Before anybody waits for the child: until then the number of its group is nobody else's.
        self.kill();
        let status = self.child.wait().await;
        let failure = outcome?;
        if failure.fault != McpFault::CommandFailed {
            return Some(failure);
        }
        // What it wrote last may still be in the pipe, which something that left its group may keep open.
        drop(tokio::time::timeout(LAST_WORDS, &mut self.reader).await);
        let code = status.ok().and_then(|status| status.code());
        let status = code.map(|code| format!(" with status {code}")).unwrap_or_default();
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.without_secrets(String::from_utf8_lossy(&kept).trim());
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        Some(McpFailure::new(McpFault::CommandFailed, format!("{}{status}{said}", failure.detail)))
    }

    /// What a command says without what it was given in secret: many repeat their arguments when something is wrong with them.
    fn without_secrets(&self, said: &str) -> String {
        let secrets = self.secrets.iter().map(SecretString::expose_secret);
        let mut long: Vec<&str> = secrets.filter(|secret| secret.len() >= LEAST_MASKED).collect();
        // One may be a part of another.
        long.sort_by_key(|secret| Reverse(secret.len()));
        long.into_iter().fold(said.to_owned(), |said, secret| said.replace(secret, MASK))
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            // An error says that nobody is left.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of a child that was waited for the number may belong to somebody else by now.
        if self.child.id().is_some() {
            self.kill();
        }
    }
}

/// Reads standard error to its end, so that the command is never held up, and keeps the last of it.
async fn keep_end(mut errors: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut part = [0; STDERR_BYTES];
    while let Ok(count @ 1..) = errors.read(&mut part).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(part.get(..count).unwrap_or_default());
        let surplus = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..surplus);
    }
}

/// Output that ends, with a fault, after so many bytes.
#[derive(Debug)]
pub(super) struct Counted<R> {
    inner: R,
    left: usize,
    trouble: Trouble,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        match self.left.checked_sub(read) {
            Some(left) => self.left = left,
            None => {
                self.trouble.tell(McpFailure::new(McpFault::TooLarge, "the command writes too much"));
                return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}
