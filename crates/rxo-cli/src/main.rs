//! The `rxo` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxo_cli::run(std::env::args_os())
}
