//! Shared: state that source and sink of one device share: the program on the interface, and notices for the
//! user.

use std::sync::atomic::{AtomicBool, Ordering};

use super::program::Program;

/// The program, which stays attached until source and sink are dropped, and notices from the source, which
/// the sink passes to the user.
#[derive(Debug)]
pub(super) struct Shared {
    _program: Program,
    is_unfinished: AtomicBool,
    is_too_long: AtomicBool,
    reported: [AtomicBool; 2],
}

impl Shared {
    pub(super) fn new(program: Program) -> Self {
        let is = || AtomicBool::new(false);
        Self { _program: program, is_unfinished: is(), is_too_long: is(), reported: [is(), is()] }
    }

    /// Records that a frame with an incomplete checksum arrived.
    #[inline]
    pub(super) fn note_unfinished(&self) {
        self.is_unfinished.store(true, Ordering::Relaxed);
    }

    /// Records that a frame exceeded the interface's MTU.
    pub(super) fn note_too_long(&self) {
        self.is_too_long.store(true, Ordering::Relaxed);
    }

    /// Returns a notice for the user, each one once; `None` if there is none.
    pub(super) fn take_notice(&self) -> Option<&'static str> {
        let all = [(&self.is_unfinished, UNFINISHED), (&self.is_too_long, TOO_LONG)];
        let mut due = all.into_iter().zip(&self.reported);
        due.find_map(|((is, line), reported)| {
            (is.load(Ordering::Relaxed) && !reported.swap(true, Ordering::Relaxed)).then_some(line)
        })
    }
}

const UNFINISHED: &str = "frames arrive with unfinished checksums, which are completed; those of tunnels and of SCTP cannot be \
                          recognized: `ethtool -K PEER tx off` at the other end, if there are any";
const TOO_LONG: &str = "GSO frames arrive without what would say how to segment them, and are dropped and counted as invalid; \
                        `ethtool -K PEER tso off gso off` at the other end, or use packet:";
