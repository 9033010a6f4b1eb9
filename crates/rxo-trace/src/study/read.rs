//! Studies a capture to its end, or until damage is found, or until the caller stops.

use rxo_capture::{Capture, Position};

use super::Study;
use crate::report::Source;

/// The number of records per batch: enough to share the fixed cost of a batch, and few enough to stay in the
/// cache.
const BATCH_RECORDS: usize = 1_024;

/// The reason why reading a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The capture was read to its end.
    Over,
    /// The capture is damaged. The report has the position and the fault.
    Damaged,
    /// The caller stopped reading.
    Stopped,
}

/// The reason why the counts of a part of a file may be wrong.
const DESCRIBED_LATE: &str = "it describes an interface after its first packet, which later parts of \
                              it do not see: analyze it as a whole";

impl Study {
    /// Studies all of `capture`. Between batches, `is_wanted` decides whether to continue. Returns the reason
    /// why reading ended.
    pub fn read(
        &mut self,
        capture: &mut Capture,
        mut is_wanted: impl FnMut(Position) -> bool,
    ) -> Ended {
        self.begin_source(capture.name());
        let mut records = Vec::with_capacity(BATCH_RECORDS);
        let (ended, damage) = loop {
            match capture.read_batch(&mut records, BATCH_RECORDS) {
                Ok(0) => break (Ended::Over, None),
                Ok(_) => self.take(capture.interfaces(), &mut records),
                Err(error) => break (Ended::Damaged, Some(error.to_string())),
            }
            if let Some(error) = self.refused.take() {
                break (Ended::Damaged, Some(error.to_string()));
            }
            if !is_wanted(capture.position()) {
                break (Ended::Stopped, None);
            }
        };
        // An end caused by a signal is not damage.
        let is_wanted = is_wanted(capture.position());
        let (ended, damage) = if is_wanted { (ended, damage) } else { (Ended::Stopped, None) };
        let damage =
            damage.or_else(|| capture.describes_later().then(|| DESCRIBED_LATE.to_owned()));
        self.end_source(&capture.format().to_string(), damage);
        ended
    }

    /// Records that the capture `name` cannot be read at all; `why` is the reason.
    pub fn refuse_source(&mut self, name: &str, why: &str) {
        self.sources.push(Source {
            name: name.to_owned(),
            format: "unknown".to_owned(),
            damage: Some(why.to_owned()),
            ..Source::default()
        });
    }
}
