//! The thread with the socket and the clock. It makes no decisions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxo_testbed::PacketSocket;
use rxo_testbed::error::{Context, LabError, Result, failed};
use rxo_testbed::traffic::{Pattern, STALL_TIMEOUT};

use super::WindowPoint;
use super::model::{Model, ModelCounters};
use super::segment::{self, Ends};

/// The result of a finished transfer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    pub(super) counters: ModelCounters,
    pub(super) record: Vec<WindowPoint>,
}

/// Drives the model until everything is acknowledged.
pub(super) fn drive(
    mut model: Model,
    socket: &PacketSocket,
    ends: &Ends,
    pattern: Pattern,
    stop: &AtomicBool,
) -> Result<Sent> {
    let cannot = || "the counting sender's socket failed".to_owned();
    let begin = Instant::now();
    let (mut frame, mut last_ack) = (Vec::new(), begin);
    let mut buffer = vec![0; RECEIVE_BYTES];
    while !model.is_done() {
        if stop.load(Ordering::Relaxed) {
            model.stop();
        }
        while let Some(length) = socket.receive(&mut buffer).context(cannot)? {
            if let Some(header) = segment::read(&buffer[..length], ends) {
                model.on_segment(&header, begin.elapsed());
                last_ack = Instant::now();
            }
        }
        model.on_timeout(begin.elapsed());
        // Sends in short trains, so that received segments need not wait for the whole window.
        for _ in 0..TRAIN_SEGMENTS {
            let Some(next) = model.poll_transmit(begin.elapsed()) else { break };
            segment::write(&mut frame, ends, &next.header, pattern.bytes(next.at, next.bytes))
                .map_err(|error| failed(format!("{}: {error}", cannot())))?;
            socket.send(&frame).context(cannot)?;
        }
        check(&model, last_ack)?;
        let until = model.poll_at().unwrap_or_default().saturating_sub(begin.elapsed());
        let wait = if model.has_to_send() { Duration::ZERO } else { until.min(TICK) };
        socket.wait(wait).context(cannot)?;
    }
    let (bytes, counters) = (model.sent_bytes(), model.counters());
    Ok(Sent { bytes, counters, record: model.into_record() })
}

fn check(model: &Model, last_ack: Instant) -> Result<()> {
    let what = if model.is_reset() {
        "was reset by the receiver".to_owned()
    } else if last_ack.elapsed() > STALL_TIMEOUT {
        format!("got no answer for {} s", STALL_TIMEOUT.as_secs())
    } else {
        return Ok(());
    };
    let sent = model.sent_bytes();
    Err(LabError::Transfer(format!("the counting sender {what}, after {sent} bytes were sent")))
}

/// Receive buffer, in bytes: more than any frame of a lab.
const RECEIVE_BYTES: usize = 66_000;
const TRAIN_SEGMENTS: usize = 64;
/// The pause between two checks of the stop flag.
const TICK: Duration = Duration::from_millis(20);
