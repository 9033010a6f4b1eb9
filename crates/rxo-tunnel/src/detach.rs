//! The way into the background: the program starts itself again, and returns when that process is ready.
//!
//! Nothing is forked: the second process is a new program from its first instruction, and so has no locks and
//! no threads of the first.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// The variable that tells the second process that the first one waits for it.
const WAITED_FOR: &str = "RXO_TUNNEL_DETACHED";

/// The line by which the second process says that it is ready.
const READY: &str = "ready";

/// Returns `true` in the second process, for which the first one waits until it is ready.
pub(crate) fn is_waited_for() -> bool {
    env::var_os(WAITED_FOR).is_some()
}

/// Starts this program again, in a session of its own, and waits until it is ready or has ended. Its
/// output until then appears here.
///
/// # Errors
/// If no process can be started.
pub(crate) fn start() -> Result<ExitCode> {
    let program = env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(WAITED_FOR, "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start the process in the background")?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).context("cannot wait for the interface")?;
    }
    // A process that has ended has printed the reason.
    Ok(if line.trim_end() == READY { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Leaves the terminal and the folder of the first process. Call it first.
pub(crate) fn leave_session() {
    // It fails only for a process that leads a session already.
    _ = rustix::process::setsid();
    // Otherwise the file system of this folder could not be unmounted.
    _ = env::set_current_dir("/");
}

/// Tells the first process that this one is ready. From then on nothing is printed, unless `is_heard`.
///
/// # Errors
/// If `/dev/null` cannot be opened.
pub(crate) fn say_ready(is_heard: bool) -> Result<()> {
    let mut output = io::stdout();
    // The first process may have been killed.
    _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.context("cannot open /dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    if !is_heard {
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(())
}
