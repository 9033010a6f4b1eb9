//! Migration of a guest from one machine to another, while it runs.
//!
//! Both machines have a monitor, a socket that takes lines and answers with text. The second machine starts with the
//! same options and waits; the first one sends the guest's memory, again what was written meanwhile, stops the guest, and
//! sends the rest.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::error::{Context, Result, failed};

use super::{AtReboot, Guest, GuestImage, GuestOptions, temporary_path};

/// Timeout of a migration, which takes some seconds.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two questions.
const BETWEEN: Duration = Duration::from_millis(20);
/// The time for which the first machine stops the guest, as it plans by the rate at which it has sent.
const PLANNED_MS: u32 = 20;
/// The end of each answer of a monitor.
const PROMPT: &str = "(qemu) ";

/// The result of a migration.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The time for which QEMU says that the guest did not run.
    pub stopped: Duration,
    /// The time from the request to the end.
    pub took: Duration,
}

/// The path of a monitor's socket, removed on drop.
#[derive(Debug)]
pub(super) struct Monitor(PathBuf);

impl Monitor {
    pub(super) fn new() -> Self {
        Self(temporary_path("monitor"))
    }

    /// Returns QEMU's options for this monitor.
    pub(super) fn arguments(&self) -> [String; 2] {
        let path = self.0.display();
        ["-monitor".to_owned(), format!("unix:{path},server=on,wait=off")]
    }

    /// Sends a command, and returns the answer.
    fn ask(&self, command: &str) -> Result<String> {
        let ask = || -> std::io::Result<String> {
            let mut socket = UnixStream::connect(&self.0)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            read_answer(&mut socket)?;
            writeln!(socket, "{command}")?;
            read_answer(&mut socket)
        };
        ask().context(|| format!("QEMU's monitor does not answer {command:?}"))
    }

    /// Asks until the answer contains `wanted`. Returns the answer.
    fn ask_until(&self, command: &str, wanted: &str) -> Result<String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The socket appears some time after the machine was started.
            let answer = self.ask(command);
            match answer {
                Ok(answer) if answer.contains(wanted) => return Ok(answer),
                Ok(answer) if answer.contains("failed") || Instant::now() > deadline => {
                    return Err(failed(format!("QEMU answers {command:?} with {answer:?}")));
                }
                Err(error) if Instant::now() > deadline => return Err(error),
                _ => thread::sleep(BETWEEN),
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn read_answer(socket: &mut UnixStream) -> std::io::Result<String> {
    let (mut text, mut bytes) = (String::new(), [0; 4_096]);
    while !text.ends_with(PROMPT) {
        let count = socket.read(&mut bytes)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    Ok(text)
}

impl Guest {
    /// Starts a guest as [`Guest::boot`] does, which can be [migrated](Guest::migrate).
    ///
    /// # Errors
    /// The errors of [`Guest::boot`].
    pub fn boot_for_migration(image: &GuestImage, options: &GuestOptions) -> Result<Self> {
        let monitor = Monitor::new();
        let mut guest = Self::power_on(image, options, AtReboot::End, &monitor.arguments())?;
        guest.await_start()?;
        guest.monitor = Some(monitor);
        Ok(guest)
    }

    /// Migrates the guest to another machine, with the card that `options` give it there, while its command runs. The
    /// first machine is ended.
    ///
    /// # Errors
    /// If the guest is not one of [`Guest::boot_for_migration`], or QEMU fails.
    pub fn migrate(&mut self, image: &GuestImage, options: &GuestOptions) -> Result<Migration> {
        let Some(from) = self.monitor.take() else {
            return Err(failed("the guest has no monitor".to_owned()));
        };
        let (monitor, path) = (Monitor::new(), temporary_path("migration"));
        let mut more = monitor.arguments().to_vec();
        more.extend(["-incoming".to_owned(), format!("unix:{}", path.display())]);
        let mut there = Self::power_on(image, options, AtReboot::End, &more)?;
        let moved = carry(&from, &monitor, &path).map_err(|error| there.explained(error));
        let _ = fs::remove_file(&path);
        let moved = moved?;
        self.machine = there.machine;
        self.console = there.console;
        self.monitor = Some(monitor);
        Ok(moved)
    }
}

/// Lets the machine of `from` send its guest to that of `to`, which waits on the socket `path`.
fn carry(from: &Monitor, to: &Monitor, path: &Path) -> Result<Migration> {
    to.ask_until("info status", "inmigrate")?;
    from.ask(&format!("migrate_set_parameter downtime-limit {PLANNED_MS}"))?;
    from.ask("migrate_set_parameter max-bandwidth 4G")?;
    let begun = Instant::now();
    from.ask(&format!("migrate -d unix:{}", path.display()))?;
    let said = from.ask_until("info migrate", "Migration status: completed")?;
    let took = begun.elapsed();
    to.ask_until("info status", "running")?;
    let stopped = said.lines().find_map(|line| line.trim().strip_prefix("downtime: "));
    let millis = stopped.and_then(|text| text.split(' ').next()?.parse().ok());
    let millis = millis.ok_or_else(|| failed(format!("QEMU says no downtime: {said:?}")))?;
    Ok(Migration { stopped: Duration::from_millis(millis), took })
}
