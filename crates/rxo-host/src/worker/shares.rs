//! How many cells a turn serves, if there are many.
//!
//! Where a wire has no delay, the ACKs of a turn bring frames before the next turn begins. Those of hundreds of
//! connections bring more than a device has room for. So a turn serves a few cells, and the others wait until
//! what these have brought is received: the senders of the others wait, and nothing is lost. Pure arithmetic on
//! counts, hence by itself.

/// Whose turn it is: the device's, or the cells'.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// A batch of so many frames does not show that the device has no more.
    full: usize,
    /// Turns in a row that have only received.
    put_off: u32,
}

impl Shares {
    pub(super) const fn new(budget_frames: usize) -> Self {
        Self { full: budget_frames, put_off: 0 }
    }

    /// How many of `cells` a turn serves that has received `frames`.
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

/// The cells of a turn. Each may bring a window of frames, and a ring has 8,192 slots.
const SHARE: usize = 32;
/// After so many turns cells are served though more frames wait, so that no flood keeps timers and applications
/// waiting.
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
