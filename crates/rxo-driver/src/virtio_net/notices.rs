//! Notices: lines for the user. Each is shown once.

use std::collections::VecDeque;

/// The lines in order, at most [`MOST`], so that a front end that reconnects again and again cannot fill memory.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<String>);

const MOST: usize = 8;

impl Notices {
    /// Adds a line for the user; drops the line if there are [`MOST`] already.
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
