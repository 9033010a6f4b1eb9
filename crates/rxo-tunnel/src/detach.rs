//! Runs the program in the background: the first process starts a second one, and ends when the second is
//! ready.
//!
//! The second process runs the program from its beginning instead of being forked, so it inherits no locks or
//! threads of the first process.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// The environment variable that tells the second process that the first one waits for it.
const WAITED_FOR: &str = "RXO_TUNNEL_DETACHED";

/// The line that the second process prints when it is ready.
const READY: &str = "ready";

/// Returns `true` if this is the second process, whose readiness the first process waits for.
pub(crate) fn is_waited_for() -> bool {
    env::var_os(WAITED_FOR).is_some()
}

/// Starts a second process of this program, and waits until that process is ready or has ended. Error messages
/// of the second process until then appear on standard error of the first.
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

/// Leaves the session and the working folder of the first process. Must be called before anything else.
pub(crate) fn leave_session() {
    // `setsid` fails only for the leader of a process group.
    _ = rustix::process::setsid();
    // Otherwise the file system of the current folder could not be unmounted.
    _ = env::set_current_dir("/");
}

/// Tells the first process that this process is ready. Afterwards standard output is discarded, and so is
/// standard error unless `is_heard` is set.
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
