//! A capture from its beginning to its end, or to where it is damaged, or to where nobody wants more.

use rxo_device::capture::{Capture, Position};

use super::Study;
use crate::report::Source;

/// Records taken at once: enough to share what is done once a batch, few enough to stay in cache.
const BATCH_RECORDS: usize = 1_024;

/// Why reading a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is over.
    Over,
    /// It is damaged from there on; the report says where and how.
    Damaged,
    /// Nobody wanted more.
    Stopped,
}

impl Study {
    /// Takes all of `capture`. Between batches `is_wanted` is asked whether to go on.
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
            if !is_wanted(capture.position()) {
                break (Ended::Stopped, None);
            }
        };
        // An end that a signal brought about is no damage.
        let is_wanted = is_wanted(capture.position());
        let (ended, damage) = if is_wanted { (ended, damage) } else { (Ended::Stopped, None) };
        self.end_source(&capture.format().to_string(), damage);
        ended
    }

    /// Takes note of a capture that cannot be read at all, and why.
    pub fn refuse_source(&mut self, name: &str, why: &str) {
        self.sources.push(Source {
            name: name.to_owned(),
            format: "unknown".to_owned(),
            damage: Some(why.to_owned()),
            ..Source::default()
        });
    }
}
