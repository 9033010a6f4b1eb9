//! Measures a transfer in a window in which enough packets cross the wire.
//!
//! A short window may have none on a busy machine: while the receiving side waits for a processor, the sender has sent its
//! congestion window and waits for ACKs, and what was lost meanwhile is sent again after 200 ms at least (RFC 6298). Such a window
//! is repeated, and made longer.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Result, bail};
use rxo_testbed::traffic::{BulkTransfer, Window};
use rxo_testbed::{CpuMeter, Lab};

use super::run::Sample;

/// The kernel's counters of the receiving side: at one instant, or in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The number of packets that the peer has sent.
    pub(super) packets: u64,
    /// The number of deliveries to the host's IP layer.
    pub(super) deliveries: u64,
    /// The number of times that the kernel's polling thread has slept; 0 where rxo polls.
    pub(super) sleeps: u64,
}

/// A window of a transfer.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) window: Window,
    pub(super) counts: Counts,
    /// The time of the windows before this one, which had too few packets.
    pub(super) waited: Duration,
}

/// The time that is left for repeated windows in all measurements of a calibration.
#[derive(Debug)]
pub(super) struct Reserve(Cell<Duration>);

impl Counts {
    /// Reads the counters, without that of the polling thread.
    ///
    /// # Errors
    /// If the kernel's counters cannot be read.
    pub(super) fn now(lab: &Lab) -> Result<Self> {
        let packets = lab.peer().interface(Lab::PEER_INTERFACE).counters()?.sent_frames;
        Ok(Self { packets, deliveries: lab.host().stack_counters()?.deliveries, sleeps: 0 })
    }
}

impl Counted {
    /// Measures `transfer` for `time`, and reads its counters with `counts`.
    ///
    /// # Errors
    /// If a counter cannot be read, or a thread of the meter has ended.
    pub(super) fn of(
        transfer: &BulkTransfer,
        meter: &CpuMeter,
        time: Duration,
        counts: impl Fn() -> Result<Counts>,
    ) -> Result<Self> {
        let before = counts()?;
        let window = transfer.measure(time, meter)?;
        let after = counts()?;
        let counts = Counts {
            packets: after.packets - before.packets,
            deliveries: after.deliveries - before.deliveries,
            sleeps: after.sleeps - before.sleeps,
        };
        Ok(Self { window, counts, waited: Duration::ZERO })
    }

    /// Returns the figures of the window per packet, with the processor time `used` of the receiving side.
    pub(super) fn sample(&self, used: Duration) -> Sample {
        let Self { window, counts, waited } = self;
        let each = |all: u64| all as f64 / counts.packets as f64;
        let idle = window.duration.saturating_sub(used).as_nanos() as f64;
        Sample {
            packets: counts.packets,
            deliveries: each(counts.deliveries),
            wire_bytes: each(window.received_bytes) + HEADER_BYTES,
            wakes: each(counts.sleeps),
            idle_ns: if counts.sleeps > 0 { idle / counts.sleeps as f64 } else { 0.0 },
            ns: used.as_nanos() as f64 / counts.packets as f64,
            gbit_per_s: window.gbit_per_s(),
            waited: *waited,
        }
    }
}

impl Reserve {
    /// Returns the reserve of a calibration of `duration`: repeated windows at most double it.
    pub(super) fn of(duration: Duration) -> Self {
        Self(Cell::new(duration.min(LARGEST)))
    }

    /// Measures a window of `time` with `measure`. While a window has fewer than `fewest` packets, measures another one that is
    /// twice as long.
    ///
    /// # Errors
    /// If `measure` fails, or the reserve has less time than the next window needs.
    pub(super) fn filled(
        &self,
        mut time: Duration,
        fewest: u64,
        mut measure: impl FnMut(Duration) -> Result<Counted>,
    ) -> Result<Counted> {
        let mut waited = Duration::ZERO;
        loop {
            let found = measure(time)?;
            let packets = found.counts.packets;
            if packets >= fewest {
                return Ok(Counted { waited, ..found });
            }
            let Some(left) = self.0.get().checked_sub(2 * time) else {
                let seconds = time.as_secs_f64();
                bail!(
                    "only {packets} packets crossed the wire in {seconds:.1} s, and no time is left for a longer window; \
                     try a larger --seconds"
                );
            };
            self.0.set(left);
            waited += time;
            time *= 2;
        }
    }
}

/// The largest reserve. The last window has at most half of it, and a signal waits for the end of a window.
const LARGEST: Duration = Duration::from_secs(20);
/// The length of the Ethernet, IPv4 and TCP headers of a segment, with timestamps, in bytes.
const HEADER_BYTES: f64 = 14.0 + 20.0 + 32.0;

#[cfg(test)]
mod tests {
    use rxo_testbed::CpuUse;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A sender in virtual time that sends a packet each millisecond, but nothing for the first `silent` ones.
    struct Sender {
        silent: Duration,
        now: Duration,
    }

    impl Sender {
        fn window(&mut self, time: Duration) -> Counted {
            let begin = self.now.max(self.silent);
            self.now += time;
            let packets = self.now.saturating_sub(begin).as_millis() as u64;
            let window = Window { duration: time, received_bytes: 0, cpu: CpuUse::default() };
            let counts = Counts { packets, ..Counts::default() };
            Counted { window, counts, waited: Duration::ZERO }
        }
    }

    fn filled(reserve: &Reserve, silent: Duration) -> Result<Counted> {
        let mut sender = Sender { silent, now: Duration::ZERO };
        reserve.filled(100 * MS, 50, |time| Ok(sender.window(time)))
    }

    #[test]
    fn a_window_without_packets_is_repeated_for_longer() {
        let reserve = Reserve::of(1_000 * MS);
        let found = filled(&reserve, Duration::ZERO).unwrap();
        assert_eq!((found.window.duration, found.waited), (100 * MS, Duration::ZERO));
        // A sender that waits for 200 ms, and then for 400 ms.
        let found = filled(&reserve, 600 * MS).unwrap();
        assert_eq!((found.window.duration, found.waited), (400 * MS, 300 * MS));
        assert_eq!((found.counts.packets, reserve.0.get()), (100, 400 * MS));
    }

    #[test]
    fn repeated_windows_end_with_the_reserve_of_all() {
        let reserve = Reserve::of(1_000 * MS);
        let error = filled(&reserve, Duration::MAX).unwrap_err().to_string();
        assert!(error.starts_with("only 0 packets crossed the wire in 0.4 s"), "{error}");
        assert!(error.ends_with("try a larger --seconds"), "{error}");
        assert_eq!(reserve.0.get(), 400 * MS);
        assert_eq!(filled(&reserve, 250 * MS).unwrap().window.duration, 200 * MS);
        assert!(filled(&reserve, 300 * MS).is_err(), "the measurements share one reserve");
    }
}
