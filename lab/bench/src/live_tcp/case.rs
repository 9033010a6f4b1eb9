//! The measured cases: every combination of link, path, connections and direction, and the words that select
//! them.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

/// The direction of the data, from the stack's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Receiving,
    Sending,
}

/// The link and the path between the peer and the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Net {
    pub(crate) mtu: u32,
    /// `true` if the links carry GSO frames whole, so that no sender segments.
    pub(crate) tso: bool,
    /// Round-trip delay.
    pub(crate) delay_ms: u64,
    /// Loss in each direction.
    pub(crate) loss_percent: u32,
}

/// The case of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    #[serde(flatten)]
    pub(super) net: Net,
    pub(super) connections: usize,
    pub(super) direction: Direction,
    /// Bytes of all connections together.
    pub(super) bytes: u64,
}

impl Net {
    /// Returns `true` for a wire without delay or loss.
    pub(super) const fn is_wire(&self) -> bool {
        self.delay_ms == 0 && self.loss_percent == 0
    }

    pub(super) const fn each_way(&self) -> Duration {
        Duration::from_millis(self.delay_ms / 2)
    }

    fn all() -> impl Iterator<Item = Self> {
        let ways = [(0, 0), (40, 0), (0, 1), (40, 1)];
        let links = [(1_500, false), (1_500, true), (9_000, false), (9_000, true)];
        links.into_iter().flat_map(move |(mtu, tso)| {
            ways.map(|(delay_ms, loss_percent)| Self { mtu, tso, delay_ms, loss_percent })
        })
    }

    /// Returns the sizes, in bytes over all `connections`. A path moves less than a wire in a given time, and
    /// with loss one connection moves little; a short transfer measures slow start alone.
    fn sizes(&self, connections: usize) -> &'static [u64] {
        match (self.delay_ms, self.loss_percent, connections) {
            // Enough for each connection that its beginning is a small part.
            (0, 0, 2_001..) => &[2_000_000_000],
            (0, 0, 401..) => &[1_000_000_000],
            (0, 0, _) => &[500_000_000],
            (0, _, _) => &[50_000_000],
            (_, 0, 1) => &[1_000_000, 16_000_000],
            (_, 0, _) => &[64_000_000],
            (_, _, 1) => &[1_000_000],
            _ => &[16_000_000],
        }
    }
}

impl Case {
    /// Returns every case, with those of one [`Net`] together.
    pub(super) fn all() -> Vec<Self> {
        let cases = |net: Net| {
            let counts: &[usize] = if net.is_wire() { &CURVE } else { &CONNECTIONS };
            counts.iter().flat_map(move |&connections| {
                net.sizes(connections).iter().flat_map(move |&bytes| {
                    [Direction::Receiving, Direction::Sending].map(|direction| Self {
                        net,
                        connections,
                        direction,
                        bytes,
                    })
                })
            })
        };
        Net::all().flat_map(cases).collect()
    }

    /// Returns `true` for the cases that run without a selection: the links and the path with one connection,
    /// many connections, and loss.
    pub(super) fn is_default(&self) -> bool {
        let Net { mtu, tso, .. } = self.net;
        let is_usual = mtu == 1_500 && !tso;
        let kinds = [self.net.is_wire(), is_usual, self.connections == 1];
        CONNECTIONS.contains(&self.connections) && kinds.iter().filter(|is_so| **is_so).count() >= 2
    }

    /// Returns the bytes of each connection.
    pub(super) const fn each(&self) -> u64 {
        self.bytes / self.connections as u64
    }

    /// Returns the words that name the case, one of each kind.
    fn words(&self) -> [String; 6] {
        let Net { mtu, tso, delay_ms, loss_percent } = self.net;
        [
            self.direction.to_string(),
            format!("mtu={mtu}"),
            format!("tso={}", if tso { "on" } else { "off" }),
            format!("delay={delay_ms}"),
            format!("loss={loss_percent}"),
            format!("connections={}", self.connections),
        ]
    }
}

/// Returns the cases that `words` select: words of one kind are alternatives, and each kind must match.
///
/// # Errors
/// If a word matches no case.
pub(super) fn chosen(cases: Vec<Case>, words: &[String]) -> Result<Vec<Case>> {
    let known: Vec<_> = cases.iter().map(Case::words).collect();
    let mut asked: [Vec<&str>; 6] = Default::default();
    for word in words {
        let kind = (0..6).find(|&kind| known.iter().any(|names| &names[kind] == word));
        let Some(kind) = kind else {
            let names = known.iter().flatten().map(String::as_str);
            let mut accepted: Vec<&str> = names.chain([super::MEMORY]).collect();
            accepted.sort_unstable();
            accepted.dedup();
            bail!("--only {word}: no row has this; there are: {}", accepted.join(", "));
        };
        asked[kind].push(word);
    }
    let is_asked = |names: &[String; 6]| {
        names
            .iter()
            .zip(&asked)
            .all(|(name, asked)| asked.is_empty() || asked.contains(&name.as_str()))
    };
    let chosen = cases.into_iter().zip(&known).filter(|(_, names)| is_asked(names));
    Ok(chosen.map(|(case, _)| case).collect())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} MB", self.words().join(" "), self.bytes / 1_000_000)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Receiving => "receiving",
            Self::Sending => "sending",
        })
    }
}

const CONNECTIONS: [usize; 3] = [1, 16, 400];
/// On a wire: how the cost grows with the connections.
const CURVE: [usize; 7] = [1, 4, 16, 64, 400, 2_000, 10_000];

#[cfg(test)]
mod tests {
    use super::*;

    fn only(words: &[&str]) -> Result<Vec<Case>> {
        chosen(Case::all(), &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_combination_is_there() {
        // Two MTUs, TSO and directions: on a wire seven counts of connections, on three paths three; slow start by itself.
        assert_eq!(Case::all().len(), 2 * 2 * 2 * (7 + 3 * 3) + 2 * 2 * 2);
        assert_eq!(only(&[]).unwrap(), Case::all());
    }

    #[test]
    fn words_of_one_kind_are_alternatives_and_kinds_add_up() {
        let rows = only(&["mtu=1500", "tso=off", "delay=0", "loss=0", "receiving"]).unwrap();
        assert_eq!(rows.iter().map(|case| case.connections).collect::<Vec<_>>(), CURVE);
        let rows = only(&["mtu=1500", "mtu=9000", "connections=16"]).unwrap();
        assert_eq!(rows.len(), 2 * 2 * 2 * 2 * 2);
        let said = only(&["mtu=1501"]).unwrap_err().to_string();
        assert!(said.starts_with("--only mtu=1501: no row has this"), "{said}");
        assert!(said.contains("mtu=1500") && said.contains("sending"), "{said}");
    }

    #[test]
    fn the_default_takes_rows_of_every_kind() {
        let rows: Vec<_> = Case::all().into_iter().filter(Case::is_default).collect();
        // The other numbers of connections are points of the curve only, which is chosen by name.
        let kept = |case: &&Case| CONNECTIONS.contains(&case.connections);
        for word in Case::all().iter().filter(kept).flat_map(Case::words) {
            assert!(rows.iter().any(|case| case.words().contains(&word)), "{word}");
        }
        assert!(rows.len() < 30, "{}", rows.len());
    }
}
