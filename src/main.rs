//! The program: parses the command line and runs the command.

use std::process::ExitCode;

use clap::Parser as _;
use toolrack::cli::{Cli, run};

/// Memory goes back to the system soon after a large upload, which the system's own allocator keeps.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse())
}
