//! Limits the number of connections that a round serves, if there are many.
//!
//! On a wire without delay, the ACKs of a round bring new frames before the next round begins. The ACKs of
//! hundreds of connections bring more frames than a device can hold. So if there are many connections, a round
//! serves only some of them. The other connections are served after the new frames have been received; their
//! peers wait meanwhile, so no frames are lost. The module is pure arithmetic on counts.

/// Decides how many connections a round serves, so that a round that serves connections follows a round that
/// receives frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// The budget of a round in frames. If a round receives this number of frames, the device may hold more.
    full: usize,
    /// The number of successive rounds that only received frames, and served no connection.
    put_off: u32,
}

impl Shares {
    pub(super) const fn new(budget_frames: usize) -> Self {
        Self { full: budget_frames, put_off: 0 }
    }

    /// Returns the number of connections to serve in a round that has received `frames`, if `cells`
    /// connections need service.
    pub(super) const fn next(&mut self, frames: usize, cells: usize) -> usize {
        if cells <= SHARE {
            self.put_off = 0;
            return usize::MAX;
        }
        if frames >= self.full && self.put_off < MOST_PUT_OFF {
            self.put_off += 1;
            return 0;
        }
        self.put_off = 0;
        SHARE
    }
}

/// Number of connections that a round serves if more need service. Each connection may bring a window of
/// frames, and a ring has 8,192 slots.
const SHARE: usize = 32;
/// Maximum number of successive rounds that serve no connection because more frames wait. The limit keeps a
/// flood of frames from stalling timers and applications.
const MOST_PUT_OFF: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_cells_are_served_at_once() {
        let mut shares = Shares::new(256);
        assert_eq!([0, 255, 256].map(|frames| shares.next(frames, SHARE)), [usize::MAX; 3]);
    }

    #[test]
    fn many_cells_are_served_in_shares_and_wait_for_the_device() {
        let mut shares = Shares::new(256);
        assert_eq!(shares.next(255, 400), SHARE);
        assert_eq!(shares.next(256, 400), 0);
        assert_eq!(shares.next(10, 400), SHARE);
    }

    #[test]
    fn a_flood_does_not_keep_them_waiting_for_ever() {
        let mut shares = Shares::new(256);
        for _ in 0..3 {
            assert!((0..MOST_PUT_OFF).all(|_| shares.next(256, 400) == 0));
            assert_eq!(shares.next(256, 400), SHARE);
        }
    }
}
