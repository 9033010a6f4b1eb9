//! Every case in turn, round after round: what is compared is measured in close succession.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

/// The samples of each case, measured in turn; after `stop` was set, what there is.
///
/// # Errors
/// The first of `measure`, which is given a case and the round.
pub(super) fn in_turn<C: Copy, S>(
    cases: &[C],
    rounds: usize,
    stop: &AtomicBool,
    mut measure: impl FnMut(C, usize) -> Result<S>,
) -> Result<Vec<Vec<S>>> {
    let mut samples: Vec<Vec<S>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (index, case) in cases.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(samples);
            }
            samples[index].push(measure(*case, round)?);
        }
    }
    Ok(samples)
}
