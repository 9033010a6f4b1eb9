//! Lines that the user should see once.

use std::collections::VecDeque;

/// Lines in order, at most a few: a front end that comes and goes cannot fill memory.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<String>);

const MOST: usize = 8;

impl Notices {
    /// Adds a line, unless there are too many.
    pub(crate) fn add(&mut self, line: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push_back(line.into());
        }
    }

    /// The oldest line.
    pub(crate) fn take(&mut self) -> Option<String> {
        self.0.pop_front()
    }
}
