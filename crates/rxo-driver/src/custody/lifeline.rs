//! Lifeline and restorer: the last process of a run, which restores everything if keeper and worker were killed
//! at once, or if both hang.
//!
//! The restorer shares no process group or session with keeper and worker, is the last process that the
//! kernel kills when memory runs out, and holds nothing of the run except its end of a socket. The other end
//! closes when keeper and worker are both gone. Contract: the restorer does nothing while the keeper or the
//! worker works, and exits silently if the keeper dismisses it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::activity::Activity;
use super::pending;
use super::watch::Watch;
use crate::guard::{self, Child, Detached, Process, Worker};
use crate::heartbeat::{Duty, Heartbeat};
use crate::wait::{Interest, WaitList};
use crate::{DeviceName, clock, descriptors};

/// The end of the socket that keeper and worker hold. The restorer waits until every copy of it is closed.
#[derive(Debug)]
pub struct Lifeline {
    channel: UnixStream,
    restorer: Child,
}

/// The restorer's side: its end of the socket, and the processes that it watches.
#[derive(Debug)]
pub struct Restorer {
    channel: UnixStream,
    /// A handle on the keeper, and its process number; `None` before Linux 5.3.
    keeper: Option<(Process, u32)>,
    /// A handle on the worker, and its process number; `None` until the keeper has sent these.
    worker: Option<(Process, u32)>,
}

/// The role of a process after [`start_restorer`].
#[derive(Debug)]
pub enum RestorerRole {
    /// This process carries out the run.
    With(Lifeline),
    /// This process is the restorer, which outlives the run and restores everything. The restorer must call
    /// [`Restorer::wait_and_restore`] and exit.
    AsRestorer(Restorer),
}

/// The length of a message in bytes: one for its kind, four for the worker's process number.
const BYTES: usize = 5;
const DISMISSED: u8 = b'd';
const WORKER: u8 = b'w';

/// Starts the restorer, the process that restores everything if the processes of the run are killed. Returns
/// in both processes; [`RestorerRole`] distinguishes the two processes. The caller must have only one thread,
/// and hold no lock and no device of the run yet.
///
/// # Errors
/// If this process has more threads, or the system cannot start another process.
pub fn start_restorer() -> io::Result<RestorerRole> {
    Ok(match guard::detach("rxo-restorer")? {
        Detached::Here { channel, child } => {
            RestorerRole::With(Lifeline { channel, restorer: child })
        }
        Detached::There { channel, starter } => {
            RestorerRole::AsRestorer(Restorer { channel, keeper: starter, worker: None })
        }
    })
}

impl Lifeline {
    /// Sends a handle on the worker to the restorer, so that the restorer can kill the worker if the worker and
    /// the keeper both hang.
    pub(super) fn name_worker(&self, worker: &Worker) {
        let Some(file) = worker.descriptor() else { return };
        let [a, b, c, d] = worker.number().to_ne_bytes();
        // If the restorer is gone, the run continues without it.
        _ = descriptors::send(self.channel.as_fd(), &[WORKER, a, b, c, d], &[file.as_fd()]);
    }

    /// Dismisses the restorer, because everything is restored or nothing was changed. Waits up to a second
    /// for its end.
    pub fn dismiss(self) {
        // A restorer that is gone already leaves nothing but its process number.
        _ = descriptors::send(self.channel.as_fd(), &[DISMISSED; BYTES], &[]);
        drop(self.channel);
        self.restorer.wait_within(EXIT_TIMEOUT);
    }
}

impl Restorer {
    /// Waits for the end of the run. Then restores `nics`, unless another process has restored them, and calls
    /// `note` with one line per nic. If the process that the host depends on is silent for twice `limit`, kills
    /// keeper and worker; a process that is not stopped by a signal gets some seconds more. If `limit` is `None`,
    /// only waits.
    pub fn wait_and_restore(
        mut self,
        nics: &[DeviceName],
        (heartbeat, limit): (Heartbeat, Option<Duration>),
        mut note: impl FnMut(&str),
    ) {
        let limit = limit.map(|limit| 2 * limit);
        let mut watch = None;
        loop {
            if let Some(limit) = limit
                && self.is_silent(limit, heartbeat, &mut watch)
            {
                self.end_both();
            }
            let pause = watch.as_ref().map_or(CHECK_INTERVAL, |(_, watch)| watch.pause());
            let pause = pause.min(CHECK_INTERVAL);
            match self.next(pause) {
                RestorerEvent::Nothing => {}
                RestorerEvent::Worker(file, number) => {
                    self.worker = Some((Process::from(file), number))
                }
                RestorerEvent::Dismissed => return,
                RestorerEvent::Gone => break,
            }
        }
        self.await_ends();
        nics.iter().for_each(|nic| restore(nic, &mut note));
    }

    /// Returns `true` if the process that the host depends on has been silent for `limit`.
    fn is_silent(
        &self,
        limit: Duration,
        heartbeat: Heartbeat,
        watch: &mut Option<(Duty, Watch)>,
    ) -> bool {
        let duty = heartbeat.duty();
        let worker = || Activity::of(self.worker.as_ref().map(|(_, number)| *number)?);
        let keeper = || Activity::of(self.keeper.as_ref().map(|(_, number)| *number)?);
        // The keeper has no heartbeat, but its work takes processor time.
        let (grace, turns) = match duty {
            Duty::None => {
                *watch = None;
                return false;
            }
            Duty::Worker => (SLACK, heartbeat.count()),
            Duty::Keeper => (2 * SLACK, keeper().map_or(0, |keeper| keeper.ran_ns())),
        };
        if watch.as_ref().is_none_or(|(before, _)| *before != duty) {
            let new = Watch::new(limit, turns, clock::now()).with_grace(grace);
            *watch = Some((duty, new));
        }
        let activity = || if duty == Duty::Worker { worker() } else { keeper() };
        watch.as_mut().is_some_and(|(_, watch)| watch.check(turns, clock::now(), activity))
    }

    fn next(&self, pause: Duration) -> RestorerEvent {
        let mut list = WaitList::new();
        let channel = self.channel.as_fd();
        list.add(Some(&channel), Interest::Readable);
        match list.wait(Some(pause)) {
            Ok(ready) if ready.has(0) => {}
            Ok(_) => return RestorerEvent::Nothing,
            Err(_) => thread::sleep(pause),
        }
        let mut bytes = [0; BYTES];
        match descriptors::receive(self.channel.as_fd(), &mut bytes, libc::MSG_DONTWAIT) {
            Ok(received) if received.count == 0 => RestorerEvent::Gone,
            Ok(_) if bytes[0] == DISMISSED => RestorerEvent::Dismissed,
            Ok(received) => {
                let [_, number @ ..] = bytes;
                let worker = |file| RestorerEvent::Worker(file, u32::from_ne_bytes(number));
                received.files.into_iter().next().map_or(RestorerEvent::Nothing, worker)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => RestorerEvent::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => RestorerEvent::Nothing,
            // The socket is broken, so keeper and worker cannot be observed any more.
            Err(_) => RestorerEvent::Gone,
        }
    }

    /// Waits until keeper and worker have ended. This is necessary because a process closes its socket before its
    /// devices, and a TAP that still exists would keep addresses and routes.
    fn await_ends(&self) {
        for (process, _) in self.worker.iter().chain(&self.keeper) {
            let mut list = WaitList::new();
            let process = process.as_fd();
            list.add(Some(&process), Interest::Readable);
            // A process that hangs in the kernel is waited for only this long.
            _ = list.wait(Some(END_TIMEOUT));
        }
    }

    fn end_both(&self) {
        // The worker first: without the keeper it would continue.
        self.worker.iter().chain(&self.keeper).for_each(|(process, _)| process.kill());
    }
}

/// The next event for the restorer.
enum RestorerEvent {
    Nothing,
    Worker(OwnedFd, u32),
    Dismissed,
    Gone,
}

/// Restores `nic`, and retries for a while: the devices of the two processes close one after another, so the
/// lock of the nic may be free only a moment later.
fn restore(nic: &DeviceName, note: &mut impl FnMut(&str)) {
    let until = clock::now() + END_TIMEOUT;
    loop {
        // At least once: the keeper may have left an unfinished record.
        match pending::restore_here(nic, &mut *note) {
            Ok(true) => return,
            // The lock is not free yet, or another run has the nic and has restored it before.
            Ok(false) | Err(_) if pending::is_pending(nic) && clock::now() < until => {}
            Ok(false) => return,
            Err(error) => return note(&error.to_string()),
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

/// The additional time that the restorer waits before it acts, in which the keeper may still act.
const SLACK: Duration = Duration::from_secs(1);
/// Maximum time to wait for the restorer's end after it was dismissed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// The time for which the restorer waits for a process to end, and for which it retries.
const END_TIMEOUT: Duration = Duration::from_secs(10);
