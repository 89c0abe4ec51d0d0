//! Servers in processes of their own: the program, the bare handler and a rerank endpoint; what they use of memory and
//! processor.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::{Client, request};
use super::measure::Result;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The argument with which the benchmark starts itself as the bare handler.
pub(crate) const BARE: &str = "--bare-handler";
/// The argument with which it starts itself as a rerank endpoint.
pub(crate) const ENDPOINT: &str = "--rerank-endpoint";

/// The argument with which it starts itself as a flood.
pub(crate) const FLOOD: &str = "--flood";

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Kept open: a server that cannot print may end.
    _output: BufReader<ChildStdout>,
}

/// Memory of a process, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    pub(crate) peak: f64,
}

impl Server {
    /// The program as it is shipped, with its default settings, over this database.
    pub(crate) fn toolrack(database: &Path) -> Result<Self> {
        Self::start(program(database))
    }

    /// The same over the database of a server.
    pub(crate) fn toolrack_on(url: &str) -> Result<Self> {
        let mut command = serve_on(url);
        command.arg("--no-auth").env("TOOLRACK_SECRETS_MASTER_KEY", "5ac1e".repeat(13).split_at(64).0);
        Self::start(command)
    }

    /// The same, but with keys: this one, and those that it makes.
    pub(crate) fn toolrack_with_keys(database: &Path, admin_key: &str) -> Result<Self> {
        let mut command = serve(database);
        command.env("TOOLRACK_AUTH_ADMIN_KEY", admin_key);
        Self::start(command)
    }

    /// The same, but endpoints on this machine may be asked.
    pub(crate) fn toolrack_with_endpoints(database: &Path) -> Result<Self> {
        let mut command = program(database);
        command.env("TOOLRACK_RERANK_ALLOW_PRIVATE", "true");
        Self::start(command)
    }

    /// A bare handler for answers of these sizes; see [`super::bare`].
    pub(crate) fn bare(sizes: &[usize]) -> Result<Self> {
        let mut command = command(std::env::current_exe()?);
        command.arg(BARE).args(sizes.iter().map(usize::to_string));
        Self::start(command)
    }

    /// A rerank endpoint that answers after this time; see [`super::endpoint`].
    pub(crate) fn endpoint(time: Duration) -> Result<Self> {
        let mut command = command(std::env::current_exe()?);
        command.args([ENDPOINT, &time.as_millis().to_string()]);
        Self::start(command)
    }

    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        match first_line(&mut child) {
            Ok((address, output)) => Ok(Self { child, address, _output: output }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Asks until the server says that it is ready.
    pub(crate) fn wait_ready(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            match self.client(Vec::new())?.ask(&request("GET", "/readyz", "")) {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    pub(crate) fn client(&self, requests: Vec<Vec<u8>>) -> Result<Client> {
        Client::connect(self.address, requests)
    }

    /// Asks once, over a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        Ok(self.client(Vec::new())?.ask(&request(method, path, body))?.to_vec())
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: f64 = line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib / 1024.0)
        };
        let (resident, peak) = field("VmRSS").zip(field("VmHWM")).ok_or("no memory figures in /proc")?;
        Ok(Memory { resident, peak })
    }

    /// Processor time of all threads that live, in seconds (Linux: first field of `schedstat`, nanoseconds).
    pub(crate) fn processor_time(&self) -> Result<f64> {
        let mut nanoseconds = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end between the two looks.
            let Ok(stat) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
            nanoseconds += stat.split(' ').next().unwrap_or_default().parse::<f64>().unwrap_or(0.0);
        }
        Ok(nanoseconds / 1e9)
    }

    /// Ends the server as an operator does.
    pub(crate) fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > PATIENCE {
                return Err("the server does not stop".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn program(database: &Path) -> Command {
    let mut command = serve(database);
    command.arg("--no-auth");
    command
}

fn serve(database: &Path) -> Command {
    serve_on(&format!("sqlite://{}", database.display()))
}

fn serve_on(url: &str) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_toolrack"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--database-url", url]);
    command
}

/// A command that knows no settings of this process.
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    // Failed requests and panics show on standard error, starts and stops do not.
    command.env("TOOLRACK_LOG_LEVEL", "info,toolrack::cli=warn");
    command
}

/// Kills a child that may have ended already.
fn end(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

fn first_line(child: &mut Child) -> Result<(SocketAddr, BufReader<ChildStdout>)> {
    let mut output = BufReader::new(child.stdout.take().ok_or("a child without standard output")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").ok_or("the server did not start")?;
    Ok((address.parse()?, output))
}
