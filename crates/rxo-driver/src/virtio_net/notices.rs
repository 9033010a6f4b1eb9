//! Notices: lines that the user should see, each once.

use std::collections::VecDeque;

/// Lines in order, at most [`MOST`]: a front end that reconnects again and again cannot fill memory.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<String>);

const MOST: usize = 8;

impl Notices {
    /// Adds a line; drops it if there are [`MOST`] already.
    pub(crate) fn add(&mut self, line: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push_back(line.into());
        }
    }

    /// Removes and returns the oldest line; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<String> {
        self.0.pop_front()
    }
}
