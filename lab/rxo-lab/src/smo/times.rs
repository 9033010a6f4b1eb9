//! Times of repeated casts.

use serde::Serialize;

use super::plan::Case;

/// Times of repeated casts of one case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Times {
    pub(super) case: Case,
    /// Minimum time in which the link carries the file, in seconds.
    pub(super) least_s: f64,
    pub(super) seconds: Vec<f64>,
    /// ACKs of one receiver per segment to the group, the maximum over all casts.
    pub(super) acks_a_segment: f64,
}

impl Times {
    /// Makes the times from casts, given as pairs of seconds and ACKs per segment. `None` without casts.
    pub(super) fn of(case: Case, least_s: f64, casts: Vec<(f64, f64)>) -> Option<Self> {
        let (seconds, acks): (Vec<f64>, Vec<f64>) = casts.into_iter().unzip();
        let acks_a_segment = acks.into_iter().reduce(f64::max)?;
        Some(Self { case, least_s, seconds, acks_a_segment })
    }

    /// Returns the times in percent of the minimum.
    pub(super) fn percent(&self) -> Vec<f64> {
        self.seconds.iter().map(|seconds| 100.0 * seconds / self.least_s).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smo::sender::Way;

    #[test]
    fn times_have_the_most_acks_of_their_casts() {
        let times = Times::of((Way::Fast, 8), 1.0, vec![(2.0, 0.07), (3.0, 0.06)]).unwrap();
        assert_eq!((times.seconds.as_slice(), times.acks_a_segment), (&[2.0, 3.0][..], 0.07));
        assert!(Times::of((Way::Fast, 8), 1.0, Vec::new()).is_none());
    }
}
