//! Switched: the lines that notify the user that coalescing has switched itself off or on.
//!
//! This module is separate so that its contract can be tested: one line for each change, and no line for a
//! probe after which coalescing stays off. The worker limits how often coalescing changes.

use crate::worker::Coalescing;

/// The numbers of times that coalescing had switched itself off and on at the last report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switched {
    off: u64,
    on: u64,
}

impl Switched {
    /// Returns the line that reports whether coalescing was switched off or on since the last call; `None` if
    /// it was not switched.
    pub(super) fn line(&mut self, now: &Coalescing) -> Option<&'static str> {
        let before = *self;
        *self = Self { off: now.switched_off, on: now.switched_on };
        if now.switched_off > before.off {
            return Some(OFF);
        }
        (now.switched_on > before.on).then_some(ON)
    }
}

const OFF: &str = "coalescing has switched itself off, because it does not pay: frames make as many deliveries; it is \
                   tried again now and then";
const ON: &str = "coalescing has switched itself on again, because it pays";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let mut switched = Switched::default();
        let mut said = |switched_off, switched_on, probes| {
            let now = Coalescing { switched_off, switched_on, probes, ..Coalescing::default() };
            switched.line(&now)
        };
        assert_eq!(said(0, 0, 0), None);
        assert_eq!(said(1, 0, 0), Some(OFF));
        assert_eq!((said(1, 0, 0), said(1, 0, 3)), (None, None));
        assert_eq!(said(1, 1, 4), Some(ON));
        assert_eq!((said(1, 1, 4), said(2, 1, 4)), (None, Some(OFF)));
    }
}
