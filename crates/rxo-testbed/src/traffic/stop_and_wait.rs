//! Sending threads whose connections write one payload at a time: each connection waits until its previous
//! payload is acknowledged.
//!
//! The kernel does not report that all data is acknowledged, so the thread polls its sockets in turn, with a
//! short pause after each pass over all sockets. Sockets that became ready during the pause write one after the
//! other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::STALL_TIMEOUT;
use super::sender::{SendingEnd, stalled};
use crate::error::{Context, Result};
use crate::sys;

/// Sends on all connections, one write at a time, until each connection reaches its limit or `stop` is set.
/// Then ends the streams.
pub(crate) fn send_one_at_a_time(
    mut ends: Vec<SendingEnd>,
    stop: &AtomicBool,
) -> Result<Vec<SendingEnd>> {
    let mut last_progress = Instant::now();
    while !stop.load(Ordering::Relaxed) && !ends.iter().all(SendingEnd::is_at_limit) {
        for end in ends.iter_mut().filter(|end| !end.is_at_limit()) {
            if end.may_write()? && end.send_some()? > 0 {
                last_progress = Instant::now();
            }
        }
        if last_progress.elapsed() > STALL_TIMEOUT {
            return Err(stalled(&ends));
        }
        thread::sleep(PAUSE);
    }
    ends.iter().try_for_each(SendingEnd::finish)?;
    Ok(ends)
}

impl SendingEnd {
    /// Returns `true` if the connection may write: a write is incomplete, or everything is acknowledged.
    fn may_write(&self) -> Result<bool> {
        let waiting = sys::unacknowledged_bytes(&self.socket)
            .context(|| "cannot ask a connection what is not acknowledged yet".into())?;
        Ok(waiting == 0 || self.begun_bytes() > 0)
    }
}

/// The pause between two passes over all sockets. This pause is short compared with the transmission time of a
/// payload on the link.
const PAUSE: Duration = Duration::from_micros(50);
