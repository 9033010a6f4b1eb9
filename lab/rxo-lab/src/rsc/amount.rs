//! Figures 4 to 8: the share of packets that coalescing eliminates, over payload, connections, entries,
//! buffer and window.

mod connections;
mod variants;

use super::examine::Examined;
use crate::figure::Figure;

/// Returns the figures of the captures, without figures that would have no values.
pub(super) fn figures(examined: &[Examined]) -> Vec<Figure> {
    let captures = Captures(examined);
    let all = [
        connections::figure_4(captures),
        connections::figure_5(captures),
        variants::figure_6(captures),
        variants::figure_7(captures),
        variants::figure_8(captures),
    ];
    let has_values = |figure: &Figure| {
        figure.series.iter().any(|series| !series.is_reference && !series.values.is_empty())
    };
    all.into_iter().filter(has_values).collect()
}

/// The captures, with lookups by condition.
#[derive(Clone, Copy)]
struct Captures<'a>(&'a [Examined]);

impl<'a> Captures<'a> {
    fn of(self, connections: usize, payload_kb: usize) -> Option<&'a Examined> {
        self.0.iter().find(|examined| {
            examined.condition.is_some_and(|condition| {
                condition.connections == connections && condition.payload_kb == payload_kb
            })
        })
    }

    /// Returns the packets of 10,000 that the paper's card eliminates in this condition; `None` if it was not
    /// captured.
    fn eliminated(self, connections: usize, payload_kb: usize) -> Option<f64> {
        self.of(connections, payload_kb).map(|examined| examined.eliminated)
    }

    /// Returns the payloads of the lab's captures in KB, ascending.
    fn payloads_kb(self) -> Vec<usize> {
        let conditions = self.0.iter().filter_map(|examined| examined.condition);
        let mut payloads: Vec<usize> = conditions.map(|condition| condition.payload_kb).collect();
        payloads.sort_unstable();
        payloads.dedup();
        payloads
    }

    /// Returns the numbers among `wanted` for which a capture was made.
    fn connections(self, wanted: &[usize]) -> Vec<usize> {
        let is_there = |count: &usize| {
            self.0
                .iter()
                .any(|examined| examined.condition.is_some_and(|c| c.connections == *count))
        };
        wanted.iter().copied().filter(is_there).collect()
    }

    /// Returns the captures that the user brought.
    fn others(self) -> impl Iterator<Item = &'a Examined> {
        self.0.iter().filter(|examined| examined.condition.is_none())
    }
}

/// Formats 5,432 of 10,000 as "54.3 %".
fn percent(of_10_000: f64) -> String {
    format!("{:.1} %", of_10_000 / 100.0)
}

fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

fn most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests;
