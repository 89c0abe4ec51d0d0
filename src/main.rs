//! The program: parses the command line and runs the command.

use std::process::ExitCode;

use clap::Parser as _;
use toolrack::cli::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}
