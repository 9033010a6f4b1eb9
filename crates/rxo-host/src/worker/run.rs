//! Runs rounds until the host is stopped.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::{Host, Turn};
use crate::link::Conflict;

/// The clock and the sleep functions of a worker. `I` is the source of the device, whose descriptor a waiter
/// may need.
pub trait Waiter<I> {
    /// Returns the current time. The time never decreases, and is measured by the clock of the frames' arrival
    /// times.
    fn now(&mut self) -> Instant;

    /// Sleeps for at most `time`.
    fn pause(&mut self, time: Duration);

    /// Blocks until `source` may have a frame, `alarm` is readable, or `timeout` has passed. May return
    /// earlier. If `source` is `None`, frames do not end the wait.
    ///
    /// # Errors
    /// If the system call that waits fails.
    fn wait(
        &mut self,
        source: Option<&I>,
        alarm: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<(), DeviceError>;
}

impl<I, O> Host<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
    O: FrameSink,
{
    /// Runs rounds until the probes of [`HostConfig::probe`](crate::HostConfig::probe) have ended, `stop` is
    /// set, or another station has claimed an address. In the last case, returns the claim, and the host should
    /// not be run; otherwise returns `None`. Must be called before [`Host::run`].
    ///
    /// # Errors
    /// The first failure of the device.
    pub fn probe<W: Waiter<I>>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
    ) -> Result<Option<Conflict>, DeviceError> {
        while self.core.network.link.is_probing() && !stop.load(Ordering::Relaxed) {
            self.turn_and_rest(waiter)?;
            if self.conflict().is_some() {
                break;
            }
        }
        Ok(self.conflict())
    }

    /// Runs rounds until `stop` is set or the device fails; then resets all connections, which wakes all
    /// blocked calls. Reads `stop` in every round and at least ten times a second. Calls `observe` after
    /// every round.
    ///
    /// # Errors
    /// The first failure of the device.
    pub fn run<W: Waiter<I>>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        mut observe: impl FnMut(&mut Self, Turn),
    ) -> Result<(), DeviceError> {
        let mut outcome = Ok(());
        while outcome.is_ok() && !stop.load(Ordering::Relaxed) {
            outcome = self.turn_and_rest(waiter).map(|turn| observe(self, turn));
        }
        let closed = self.close(waiter.now());
        outcome.and(closed)
    }

    /// Resets all connections and accepts no more commands. The handles of applications stay valid and return
    /// errors.
    ///
    /// # Errors
    /// The failure of the device.
    pub fn close(&mut self, now: Instant) -> Result<(), DeviceError> {
        self.core.post().close();
        self.core.apply_commands();
        self.core.connections.abort_all();
        self.core.network.drain.open();
        self.core.serve_some(usize::MAX, now, &mut self.sink).map(|_| ())
    }

    fn turn_and_rest<W: Waiter<I>>(&mut self, waiter: &mut W) -> Result<Turn, DeviceError> {
        let now = waiter.now();
        let turn = self.turn(now)?;
        if turn.frames > 0 || turn.served > 0 {
            self.false_alarms = 0;
        }
        let has_more = self.core.connections.has_more_to_serve();
        if self.is_busy || has_more || turn.frames > 0 || turn.commands > 0 {
            self.gather(waiter, now, turn);
            return Ok(turn);
        }
        self.core.post().announce_sleep();
        // Commands that came before `announce_sleep` have not set the alarm.
        let is_quiet = self.core.apply_commands() == 0;
        let outcome = if is_quiet { self.wait(waiter, now) } else { Ok(()) };
        self.core.post().wake_up();
        outcome.map(|()| turn)
    }

    /// Pauses after a batch that shows a sender at full speed, so that more frames gather in the device. Does
    /// not pause after a batch of GSO frames, because each GSO frame already contains many segments.
    fn gather<W: Waiter<I>>(&mut self, waiter: &mut W, now: Instant, turn: Turn) {
        let has_more =
            turn.frames >= self.budget_frames || self.core.connections.has_more_to_serve();
        if self.is_busy || has_more || self.core.post().memory().queue().recent().has_gso() {
            return;
        }
        if let Some(time) = self.pause.after(turn.frames) {
            waiter.pause(self.poll_at().map_or(time, |at| at.since(now).min(time)));
        }
    }

    fn wait<W: Waiter<I>>(&mut self, waiter: &mut W, now: Instant) -> Result<(), DeviceError> {
        let left = self.poll_at().map_or(LONGEST_WAIT, |at| at.since(now).min(LONGEST_WAIT));
        // The sink holds packets that the device did not accept: retry soon.
        let left = if self.sink.is_blocked() { left.min(SHORT_WAIT) } else { left };
        if self.false_alarms < MOST_FALSE_ALARMS {
            self.false_alarms += 1;
            return waiter.wait(Some(&self.source), self.core.post().alarm(), left);
        }
        self.false_alarms = 0;
        self.core.copy_overdue(true);
        waiter.wait(None, self.core.post().alarm(), left.min(SHORT_WAIT))
    }
}

/// Number of successive waits without a frame after which all frames are returned to the ring. Returning the
/// frames ends such waits: a ring also reports that it is readable while a connection keeps its newest frame,
/// or while the ring is full.
const MOST_FALSE_ALARMS: u32 = 4;
/// The maximum duration of a short wait. Short waits are used for a blocked sink, and for a ring that cannot be
/// polled because its frames were just returned and an application may still be using one.
const SHORT_WAIT: Duration = Duration::from_micros(500);
/// The maximum time until a worker notices that `stop` is set.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
