//! The receivers of a cast and their results, which decide whether the command has failed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rxo::tcp::Outcome;
use rxo_host::CastProgress;

/// The receivers of a cast by their results: how many joined, completed and failed.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) joined: usize,
    pub(super) done: usize,
    pub(super) failed: usize,
    /// `true` once the sender has sent the first byte: receivers that join afterwards are late.
    has_begun: bool,
    /// Number of connections that have not ended, by host; no host has 0.
    present: BTreeMap<IpAddr, usize>,
    /// Receivers that joined late, or again, and whose connections have not ended.
    again: BTreeSet<SocketAddr>,
    /// Number of receivers that joined in time and failed, by host.
    lost: BTreeMap<IpAddr, usize>,
    /// Number of receivers that joined late, or again, and have the file, by host.
    caught_up: BTreeMap<IpAddr, usize>,
    /// The reason why a host was refused, for each refused host that has not joined since.
    refused: BTreeMap<IpAddr, String>,
    pub(super) progress: CastProgress,
}

impl Tally {
    /// Records that the sender sends the first byte, so that later receivers are late.
    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Counts `peer` as a receiver that has joined.
    pub(super) fn join(&mut self, peer: SocketAddr) {
        self.joined += 1;
        let connections = self.present.entry(peer.ip()).or_default();
        *connections += 1;
        if self.has_begun || *connections > 1 || self.lost.contains_key(&peer.ip()) {
            self.again.insert(peer);
        }
        self.refused.remove(&peer.ip());
    }

    /// Records that the host of `peer` was refused, and `why`. The number of recorded hosts is limited, because any
    /// host can connect.
    pub(super) fn refuse(&mut self, peer: SocketAddr, why: String) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.insert(peer.ip(), why);
        }
    }

    /// Records the `outcome` of the receiver `peer`, whose connection has ended.
    pub(super) fn end(&mut self, peer: SocketAddr, outcome: Outcome) {
        let (is_done, is_again) = (outcome == Outcome::Done, self.again.remove(&peer));
        if let Entry::Occupied(mut connections) = self.present.entry(peer.ip()) {
            *connections.get_mut() -= 1;
            if *connections.get() == 0 {
                connections.remove();
            }
        }
        self.done += usize::from(is_done);
        self.failed += usize::from(!is_done);
        match (is_done, is_again) {
            (false, false) => *self.lost.entry(peer.ip()).or_default() += 1,
            (true, true) => *self.caught_up.entry(peer.ip()).or_default() += 1,
            _ => {}
        }
    }

    /// Returns the number of receivers without the file: receivers that joined in time and failed, unless
    /// their host joined again and received it. If fewer receivers than expected have the file, failures of
    /// late receivers count too.
    fn lacking(&self, expected: usize) -> usize {
        if self.done < expected {
            return self.failed;
        }
        let caught_up = |host| self.caught_up.get(host).copied().unwrap_or_default();
        self.lost.iter().map(|(host, &lost)| lost.saturating_sub(caught_up(host))).sum()
    }

    pub(super) fn ended(&self) -> usize {
        self.done + self.failed
    }

    /// Returns the number of hosts that are connected now. A receiver that was killed and restarted has two
    /// connections until the sender notices.
    pub(super) fn present(&self) -> usize {
        self.present.len()
    }

    /// Returns the number of hosts that were refused and have not joined since.
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Returns one line with the reason why the cast did not reach `expected` receivers; `None` if the cast
    /// reached them. A refused host is named only if a receiver is missing, because any host can connect. A
    /// receiver that restarted and has the file is not missing.
    pub(super) fn shortfall(&self, expected: usize, wait: Duration) -> Option<String> {
        let (joined, lacking) = (self.joined, self.lacking(expected));
        let absent = (joined < expected)
            .then(|| format!("{joined} of {expected} receivers came within {wait:?}"));
        let failed = (lacking > 0).then(|| format!("{lacking} of {joined} receivers failed"));
        let first = self.refused.first_key_value().filter(|_| absent.is_some());
        let refused = first.map(|(peer, why)| match self.refused.len() {
            1 => format!("1 was refused: {peer}, {why}"),
            count => format!("{count} were refused, one of them {peer}: {why}"),
        });
        let parts: Vec<String> = [absent, failed, refused].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

const MOST_REFUSED: usize = 65_536;

#[cfg(test)]
mod tests {
    use rxo::tcp::{Failure, Refusal};

    use super::*;

    fn peer(number: u8) -> SocketAddr {
        ([10, 0, 0, number], 50_000).into()
    }

    /// Returns the shortfall message of a cast to three receivers after the events in `happens`.
    fn said(happens: impl FnOnce(&mut Tally)) -> Option<String> {
        let mut tally = Tally::default();
        happens(&mut tally);
        tally.shortfall(3, Duration::from_secs(30))
    }

    const RESET: Outcome = Outcome::Failed(Failure::Reset);

    fn fail(tally: &mut Tally, number: u8) {
        tally.join(peer(number));
        tally.end(peer(number), RESET);
    }

    fn done(tally: &mut Tally, numbers: std::ops::Range<u8>) {
        for number in numbers {
            tally.join(peer(number));
            tally.end(peer(number), Outcome::Done);
        }
    }

    #[test]
    fn everybody_who_was_expected_must_have_the_file() {
        assert_eq!(said(|tally| done(tally, 0..3)), None);
        assert_eq!(said(|tally| done(tally, 0..4)), None, "one came late");
        let few = said(|tally| done(tally, 0..2));
        assert_eq!(few.unwrap(), "2 of 3 receivers came within 30s");
        let failed = said(|tally| {
            done(tally, 0..2);
            fail(tally, 9);
        });
        assert_eq!(failed.unwrap(), "1 of 3 receivers failed");
    }

    /// The host's old connection may fail before or after the new one has the file.
    #[test]
    fn a_host_that_restarts_and_has_the_file_has_not_failed() {
        for fails_first in [true, false] {
            let again = said(|tally| {
                (1..=3).for_each(|number| tally.join(peer(number)));
                tally.begin();
                let once_more = SocketAddr::new(peer(1).ip(), 50_001);
                tally.join(once_more);
                let mut ends = [(peer(1), RESET), (once_more, Outcome::Done)];
                if !fails_first {
                    ends.reverse();
                }
                ends.into_iter().for_each(|(peer, outcome)| tally.end(peer, outcome));
                [2, 3].into_iter().for_each(|number| tally.end(peer(number), Outcome::Done));
                assert_eq!((tally.done, tally.failed), (3, 1));
            });
            assert_eq!(again, None);
        }
    }

    /// It may have been killed, so that its first connection still looks alive.
    #[test]
    fn a_host_that_restarts_before_the_first_byte_counts_once() {
        for ends_before in [true, false] {
            let again = said(|tally| {
                tally.join(peer(1));
                if ends_before {
                    tally.end(peer(1), RESET);
                }
                let once_more = SocketAddr::new(peer(1).ip(), 50_001);
                tally.join(once_more);
                assert_eq!(tally.present(), 1);
                [2, 3].into_iter().for_each(|number| tally.join(peer(number)));
                assert_eq!(tally.present(), 3);
                tally.begin();
                if !ends_before {
                    tally.end(peer(1), RESET);
                }
                [2, 3].into_iter().for_each(|number| tally.end(peer(number), Outcome::Done));
                tally.end(once_more, Outcome::Done);
                assert_eq!((tally.present(), tally.done, tally.failed), (0, 3, 1));
            });
            assert_eq!(again, None);
        }
    }

    #[test]
    fn a_late_stranger_neither_fails_a_cast_nor_saves_it() {
        let fails = said(|tally| {
            done(tally, 0..3);
            tally.begin();
            fail(tally, 9);
        });
        assert_eq!(fails, None);
        let has_it = said(|tally| {
            done(tally, 0..2);
            fail(tally, 2);
            tally.begin();
            done(tally, 9..10);
        });
        assert_eq!(has_it.unwrap(), "1 of 4 receivers failed");
        let few = said(|tally| {
            done(tally, 0..2);
            tally.begin();
            fail(tally, 9);
        });
        assert_eq!(few.unwrap(), "1 of 3 receivers failed", "it may be the third");
    }

    #[test]
    fn refused_hosts_explain_who_is_missing_until_they_join() {
        let no_sack = Refusal::NoSack.to_string();
        let refused = said(|tally| {
            tally.refuse(peer(9), no_sack.clone());
            tally.refuse(peer(9), no_sack.clone());
            done(tally, 0..2);
        });
        let expected = "2 of 3 receivers came within 30s; 1 was refused: 10.0.0.9, it has no SACK; switch that on";
        assert_eq!(refused.unwrap(), expected);
        let also = said(|tally| {
            done(tally, 0..1);
            tally.refuse(peer(9), no_sack.clone());
            tally.refuse(peer(8), Refusal::Late.to_string());
        });
        let expected = "1 of 3 receivers came within 30s; 2 were refused, one of them 10.0.0.8: it came after the first byte; --late catch-up admits it";
        assert_eq!(also.unwrap(), expected);
        let again = said(|tally| {
            tally.refuse(peer(1), no_sack.clone());
            done(tally, 0..2);
        });
        assert_eq!(again.unwrap(), "2 of 3 receivers came within 30s", "it came again, with SACK");
        let stranger = said(|tally| {
            done(tally, 0..3);
            tally.refuse(peer(9), no_sack);
        });
        assert_eq!(stranger, None, "whoever asks fails nothing");
    }
}
