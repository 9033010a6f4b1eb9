//! A capture read batch by batch, until it ends, is damaged, or a signal comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo_capture::{Capture, Record};

use super::Input;
use crate::numbers::grouped;

/// Most records and bytes of a batch; a record may be a long aggregate.
const BATCH_RECORDS: usize = 1_024;
const BATCH_BYTES: usize = 1 << 20;
/// Records that are read between two looks at the bytes.
const STEP_RECORDS: usize = 16;

/// A capture that is being read.
pub(crate) struct Reading {
    pub(crate) capture: Capture,
    /// The records of the last batch that were not taken yet.
    pub(crate) records: Vec<Record>,
    stop: Arc<AtomicBool>,
    packets: u64,
    /// How the capture ended after the last batch.
    ended: Option<Step>,
}

/// The result of reading the next batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There are more records.
    More,
    /// The capture was read to its end.
    Over,
    /// Reading ended before the end of the capture; says why.
    Partial(String),
}

impl Reading {
    /// Opens the capture and reads the first batch.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a capture.
    pub(crate) fn open(input: &Input, stop: &Arc<AtomicBool>) -> Result<(Self, Step)> {
        let capture = input.open(stop).map_err(Error::from)?;
        let (stop, records) = (Arc::clone(stop), Vec::with_capacity(BATCH_RECORDS));
        let mut reading = Self { capture, records, stop, packets: 0, ended: None };
        let step = reading.next();
        Ok((reading, step))
    }

    /// Reads the next batch.
    pub(crate) fn next(&mut self) -> Step {
        if self.ended.is_none() {
            self.fill();
        }
        if self.stop.load(Ordering::Relaxed) {
            let packets = grouped(self.packets);
            return Step::Partial(format!("interrupted after {packets} packets"));
        }
        match self.ended.take_if(|_| self.records.is_empty()) {
            None => Step::More,
            Some(ended) => ended,
        }
    }

    /// Reads until the batch is full or the capture ends.
    fn fill(&mut self) {
        let mut bytes = 0;
        while self.records.len() < BATCH_RECORDS && bytes < BATCH_BYTES && self.ended.is_none() {
            let before = self.records.len();
            match self.capture.read_batch(&mut self.records, STEP_RECORDS) {
                Ok(0) => self.ended = Some(Step::Over),
                Ok(read) => self.packets += read as u64,
                Err(error) => self.ended = Some(Step::Partial(error.to_string())),
            }
            let new = self.records.get(before..).unwrap_or_default();
            bytes += new.iter().map(|record| record.bytes.as_ref().len()).sum::<usize>();
        }
    }
}
