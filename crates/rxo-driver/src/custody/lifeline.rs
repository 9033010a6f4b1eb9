//! The last process of a run: gives everything back when both others were ended at once, or both hang.
//!
//! It belongs to no group and no session of theirs, is the last that a lack of memory ends, and holds nothing of the run
//! but its end of a socket. That closes when both others are gone. Contract: it does nothing while one of them works, and
//! goes without a word if the keeper has dismissed it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::activity::Activity;
use super::owed;
use super::watch::Watch;
use crate::guard::{self, Child, Detached, Process, Worker};
use crate::pulse::{Duty, Pulse};
use crate::wait::{Interest, WaitList};
use crate::{DeviceName, clock, descriptors};

/// The side of the processes that carry out the run. The last process waits until every copy of it is gone.
#[derive(Debug)]
pub struct Lifeline {
    channel: UnixStream,
    restorer: Child,
}

/// The side of the last process.
#[derive(Debug)]
pub struct Restorer {
    channel: UnixStream,
    /// The keeper, and its number.
    keeper: Option<(Process, u32)>,
    /// The worker, and its number.
    worker: Option<(Process, u32)>,
}

/// Which side this process is on.
#[derive(Debug)]
pub enum Lives {
    /// This process goes on.
    With(Lifeline),
    /// This is the last process. It must call [`Restorer::outlive`] and end.
    AsRestorer(Restorer),
}

/// A message is its kind, and the number of the worker.
const BYTES: usize = 5;
const DISMISSED: u8 = b'd';
const WORKER: u8 = b'w';

/// Starts the last process. This one must have only one thread, and hold nothing of the run yet: no lock and no device.
///
/// # Errors
/// If it has more threads, or the system cannot start another process.
pub fn secure() -> io::Result<Lives> {
    Ok(match guard::detach("rxo-restorer")? {
        Detached::Here { channel, child } => Lives::With(Lifeline { channel, restorer: child }),
        Detached::There { channel, starter } => {
            Lives::AsRestorer(Restorer { channel, keeper: starter, worker: None })
        }
    })
}

impl Lifeline {
    /// Names the worker, so that one that hangs together with the keeper can be ended.
    pub(super) fn name_worker(&self, worker: &Worker) {
        let Some(file) = worker.descriptor() else { return };
        let [a, b, c, d] = worker.number().to_ne_bytes();
        // If the last process is gone, the run is as one without it.
        _ = descriptors::send(self.channel.as_fd(), &[WORKER, a, b, c, d], &[file.as_fd()]);
    }

    /// Everything is given back, or nothing was changed: the last process is not needed any more.
    pub fn dismiss(self) {
        // If it is gone already, it leaves nothing but its number.
        _ = descriptors::send(self.channel.as_fd(), &[DISMISSED; BYTES], &[]);
        drop(self.channel);
        self.restorer.wait_within(GOING);
    }
}

impl Restorer {
    /// Waits for the end of the run, and restores the nics if nobody else has; `note` gets a line then. If the one that
    /// the host depends on does nothing for twice `limit`, or some seconds more unless it is stopped, and nobody has ended it,
    /// both are ended here. `None` watches nobody.
    pub fn outlive(
        mut self,
        nics: &[DeviceName],
        (pulse, limit): (Pulse, Option<Duration>),
        mut note: impl FnMut(&str),
    ) {
        let limit = limit.map(|limit| 2 * limit);
        let mut watch = None;
        loop {
            if let Some(limit) = limit
                && self.is_silent(limit, pulse, &mut watch)
            {
                self.end_both();
            }
            let pause = watch.as_ref().map_or(BETWEEN_LOOKS, |(_, watch)| watch.pause());
            let pause = pause.min(BETWEEN_LOOKS);
            match self.next(pause) {
                Next::Nothing => {}
                Next::Worker(file, number) => self.worker = Some((Process::from(file), number)),
                Next::Dismissed => return,
                Next::Gone => break,
            }
        }
        self.await_ends();
        nics.iter().for_each(|nic| restore(nic, &mut note));
    }

    /// Whether the process that must work has been silent for `limit`.
    fn is_silent(&self, limit: Duration, pulse: Pulse, watch: &mut Option<(Duty, Watch)>) -> bool {
        let duty = pulse.duty();
        let worker = || Activity::of(self.worker.as_ref().map(|(_, number)| *number)?);
        let keeper = || Activity::of(self.keeper.as_ref().map(|(_, number)| *number)?);
        // The keeper counts nothing, but what it does takes time of a processor.
        let (patience, beats) = match duty {
            Duty::Nobody => {
                *watch = None;
                return false;
            }
            Duty::Worker => (SLACK, pulse.beats()),
            Duty::Keeper => (2 * SLACK, keeper().map_or(0, Activity::ran_ns)),
        };
        if watch.is_none_or(|(before, _)| before != duty) {
            let new = Watch::new(limit, beats, clock::now()).with_patience(patience);
            *watch = Some((duty, new));
        }
        let activity = || if duty == Duty::Worker { worker() } else { keeper() };
        watch.as_mut().is_some_and(|(_, watch)| watch.look(beats, clock::now(), activity))
    }

    fn next(&self, pause: Duration) -> Next {
        let mut list = WaitList::new();
        let channel = self.channel.as_fd();
        list.add(Some(&channel), Interest::Readable);
        match list.wait(Some(pause)) {
            Ok(ready) if ready.has(0) => {}
            Ok(_) => return Next::Nothing,
            Err(_) => thread::sleep(pause),
        }
        let mut bytes = [0; BYTES];
        match descriptors::receive(self.channel.as_fd(), &mut bytes, libc::MSG_DONTWAIT) {
            Ok(received) if received.count == 0 => Next::Gone,
            Ok(_) if bytes[0] == DISMISSED => Next::Dismissed,
            Ok(received) => {
                let [_, number @ ..] = bytes;
                let worker = |file| Next::Worker(file, u32::from_ne_bytes(number));
                received.files.into_iter().next().map_or(Next::Nothing, worker)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Next::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Next::Nothing,
            // The socket gives nothing any more.
            Err(_) => Next::Gone,
        }
    }

    /// Their sockets close before their devices do, and a TAP that is still there would keep addresses and routes.
    fn await_ends(&self) {
        for (process, _) in self.worker.iter().chain(&self.keeper) {
            let mut list = WaitList::new();
            let process = process.as_fd();
            list.add(Some(&process), Interest::Readable);
            // One that hangs in the kernel is not waited for without end.
            _ = list.wait(Some(PATIENCE));
        }
    }

    fn end_both(&self) {
        // The worker first: a keeper that is gone would let it go on.
        self.worker.iter().chain(&self.keeper).for_each(|(process, _)| process.kill());
    }
}

/// The next event of the last process.
enum Next {
    Nothing,
    Worker(OwnedFd, u32),
    Dismissed,
    Gone,
}

/// The devices of the two processes close one after another, so the record may be right only a moment later.
fn restore(nic: &DeviceName, note: &mut impl FnMut(&str)) {
    let until = clock::now() + PATIENCE;
    loop {
        // Once in any case: what the keeper has left may be the beginning of a record.
        match owed::pay(nic, &mut *note) {
            Ok(true) => return,
            // It is not free yet; or another run has it, which has restored it before.
            Ok(false) | Err(_) if owed::is_owed(nic) && clock::now() < until => {}
            Ok(false) => return,
            Err(error) => return note(&error.to_string()),
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

/// How much later than the keeper this process acts, if the keeper may still act.
const SLACK: Duration = Duration::from_secs(1);
/// How long the last process is waited for when it is dismissed.
const GOING: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// How long it is tried.
const PATIENCE: Duration = Duration::from_secs(10);
