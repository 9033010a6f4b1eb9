//! A capture read batch by batch, until it ends, is damaged, or nobody wants more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo_device::capture::{Capture, Record};

use super::Input;
use crate::numbers::grouped;

/// Records read at once.
const BATCH_RECORDS: usize = 1_024;

/// A capture being read.
pub(crate) struct Reading {
    pub(crate) capture: Capture,
    /// The batch read last, as far as it was not taken.
    pub(crate) records: Vec<Record>,
    stop: Arc<AtomicBool>,
    packets: u64,
}

/// What reading on came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There are more records.
    More,
    /// The capture is at its end.
    Over,
    /// This is not its end; why there is no more.
    Partial(String),
}

impl Reading {
    /// Opens it and reads the first batch.
    ///
    /// # Errors
    /// When it cannot be opened, or is no capture.
    pub(crate) fn open(input: &Input, stop: &Arc<AtomicBool>) -> Result<(Self, Step)> {
        let capture = input.open(stop).map_err(Error::from)?;
        let (stop, records) = (Arc::clone(stop), Vec::with_capacity(BATCH_RECORDS));
        let mut reading = Self { capture, records, stop, packets: 0 };
        let step = reading.next();
        Ok((reading, step))
    }

    /// Reads the next batch.
    pub(crate) fn next(&mut self) -> Step {
        let read = self.capture.read_batch(&mut self.records, BATCH_RECORDS);
        if self.stop.load(Ordering::Relaxed) {
            let packets = grouped(self.packets);
            return Step::Partial(format!("interrupted after {packets} packets"));
        }
        match read {
            Ok(0) => Step::Over,
            Ok(records) => {
                self.packets += records as u64;
                Step::More
            }
            Err(error) => Step::Partial(error.to_string()),
        }
    }
}
