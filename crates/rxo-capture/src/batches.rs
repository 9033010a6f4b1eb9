//! Reads a capture in batches of bounded size, until the capture ends, is found damaged, or a stop flag is set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Capture, CaptureError, Record};

/// The maximum number of records in a batch.
const BATCH_RECORDS: usize = 1_024;
/// The maximum number of bytes in a batch, including options. A limit on records alone would not bound the
/// memory, because a record may be a long aggregate.
const BATCH_BYTES: usize = 1 << 20;
/// The number of records that are read between two checks of the batch's size.
const STEP_RECORDS: usize = 16;

/// A capture that is being read in batches.
///
/// # Examples
/// ```
/// use std::io::Cursor;
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
///
/// use rxo_capture::{Batches, Capture, CaptureWriter, Step};
///
/// let empty = CaptureWriter::new(Vec::new(), "an example")?.finish()?;
/// let capture = Capture::from_reader("empty", Box::new(Cursor::new(empty)))?;
/// let mut batches = Batches::new(capture, Arc::new(AtomicBool::new(false)));
/// assert!(matches!(batches.step(), Step::Over));
/// assert!(batches.records.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batches {
    /// The capture that is being read.
    pub capture: Capture,
    /// The records of the last batch that the caller has not taken yet.
    pub records: Vec<Record>,
    stop: Arc<AtomicBool>,
    packets: u64,
    /// The reason why reading has ended, reported after the last batch; `None` while reading continues.
    ended: Option<Step>,
}

/// The result of reading one batch.
#[derive(Debug)]
pub enum Step {
    /// The batch was read; there may be more records.
    More,
    /// The capture was read completely, to its end.
    Over,
    /// The capture is damaged after the records of this batch.
    Damaged(CaptureError),
    /// The stop flag was set after this number of packets of the capture had been read.
    Stopped(u64),
}

impl Batches {
    /// Creates a reader of `capture` that stops when the flag `stop` is set. Allocates space for a batch.
    #[must_use]
    pub fn new(capture: Capture, stop: Arc<AtomicBool>) -> Self {
        let records = Vec::with_capacity(BATCH_RECORDS);
        Self { capture, records, stop, packets: 0, ended: None }
    }

    /// Appends the next records of the capture to [`records`](Self::records), until `records` contains 1,024
    /// records or 1 MiB was read. Returns the result of reading them.
    pub fn step(&mut self) -> Step {
        if self.ended.is_none() {
            self.fill();
        }
        if self.stop.load(Ordering::Relaxed) {
            return Step::Stopped(self.packets);
        }
        self.ended.take_if(|_| self.records.is_empty()).unwrap_or(Step::More)
    }

    /// Reads records until the batch is full or the capture ends.
    fn fill(&mut self) {
        let mut bytes = 0;
        while self.records.len() < BATCH_RECORDS && bytes < BATCH_BYTES && self.ended.is_none() {
            let before = self.records.len();
            match self.capture.read_batch(&mut self.records, STEP_RECORDS) {
                Ok(0) => self.ended = Some(Step::Over),
                Ok(read) => self.packets += read as u64,
                Err(error) => self.ended = Some(Step::Damaged(error)),
            }
            let new = self.records.get(before..).unwrap_or_default();
            bytes += new.iter().map(Record::kept_bytes).sum::<usize>();
        }
    }
}
