//! Compares several policies on the same packets, in one table.
//!
//! A [`NamedPolicy`] is a policy with a name: either a set of settings, or rules that are written in code.
//! [`PolicyComparison`] passes each packet of the captures to every policy, and fills a [`ComparisonTable`];
//! the module `text` formats it. A comparison is simpler than a study: it has no flows, no advice and no parts.
//!
//! * `named`: the policies and their names; `file`: policies as TOML files.
//! * `counts`: the counts of a policy's deliveries.
//! * `table`: the result as data.
//!
//! # Contract
//! Equal records give equal tables. Memory is bounded by the number of interfaces, flows and policies. No
//! record causes a panic, whatever its bytes or time.

mod counts;
mod file;
mod named;
mod table;

use core::fmt;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use rxo_capture::{Capture, Interface, LinkType, Network, Position, Record};
use rxo_frame::{ChecksumStatus, ConfigError, Frame, LinkKind};
use rxo_wire::checksum::Summer;

pub use named::{NamedPolicy, PolicyError};
pub use table::{ComparisonTable, PolicyOutcome};

use self::counts::{DeliveryCounts, FlowNumbers};
use self::named::{NOT_IN_ONE_LINE, is_in_one_line};
use super::packet_kind::PacketKind;
use super::replay::{Receive, Replay};
use super::{ChecksumMode, Clock, Ended, PollRule, UNKNOWN_LINK, checksum_status, intake};
use crate::numbered::Numbered;
use crate::projection::Costs;

/// The configuration of a comparison.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rule that determines when the host polls.
    pub poll: PollRule,
    /// The treatment of TCP and UDP checksums.
    pub checksums: ChecksumMode,
    /// The costs of receiving, from which the cores are predicted.
    pub costs: Costs,
    /// The origin of the costs, as printed in the table (for example "assumed").
    pub costs_from: String,
    /// The rate for which the cores are predicted, in 10^9 bits per second.
    pub rate_gbit_per_s: f64,
}

/// A comparison in progress, which processes the records of captures and produces a table.
///
/// # Examples
/// ```no_run
/// use rxo_capture::Capture;
/// use rxo_trace::projection::Costs;
/// use rxo_trace::study::compare::{PolicyComparison, NamedPolicy, Settings};
/// use rxo_trace::study::ChecksumMode;
///
/// let settings = Settings {
///     poll: "time:50us".parse()?,
///     checksums: ChecksumMode::Auto,
///     costs: Costs::ASSUMED,
///     costs_from: "assumed".to_owned(),
///     rate_gbit_per_s: 10.0,
/// };
/// let mut comparison = PolicyComparison::new(NamedPolicy::list("none,linux-gro,juggler")?, settings)?;
/// comparison.read(&mut Capture::open("monday.pcapng".as_ref())?, |_position| true);
/// println!("{}", rxo_trace::text::comparison(&comparison.finish(None)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolicyComparison {
    settings: Settings,
    policies: Vec<NamedPolicy>,
    counts: Vec<DeliveryCounts>,
    /// The replays of each interface, one for each policy; empty if there are too many interfaces.
    replays: Vec<Vec<Replay>>,
    served: usize,
    flows: FlowNumbers,
    clock: Clock,
    summer: Summer,
    seed: u64,
    packets: u64,
    bytes: u64,
    unserved: u64,
    sources: Vec<String>,
    damage: Option<String>,
}

impl fmt::Debug for PolicyComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, policies, packets, .. } = self;
        let mut all = f.debug_struct("PolicyComparison");
        all.field("settings", settings).field("policies", policies).field("packets", packets);
        all.finish_non_exhaustive()
    }
}

/// The maximum number of interfaces with engines.
const MOST_INTERFACES: usize = 16;
const BATCH_RECORDS: usize = 1_024;

impl PolicyComparison {
    /// Begins a comparison.
    ///
    /// # Errors
    /// [`PolicyError`] if two policies have the same name, a name has a control character, or a number in a policy is out
    /// of range.
    pub fn new(policies: Vec<NamedPolicy>, settings: Settings) -> Result<Self, PolicyError> {
        let seed = RandomState::new().hash_one(0);
        if let Some(name) = policies.iter().map(NamedPolicy::name).find(|it| !is_in_one_line(it)) {
            return Err(PolicyError(format!("{name:?}: the name of a policy {NOT_IN_ONE_LINE}")));
        }
        let mut known = BTreeSet::new();
        if let Some(twice) = policies.iter().find(|it| !known.insert(it.name())) {
            let name = twice.name();
            return Err(PolicyError(format!("{name}: two policies have this name; rename one")));
        }
        // Invalid policies are refused before anything is read.
        for policy in &policies {
            let engine = policy.engine(settings.poll, LinkKind::Ethernet, false, seed);
            engine.map_err(|error| PolicyError(format!("{}: {error}", policy.name())))?;
        }
        Ok(Self {
            counts: policies.iter().map(|_| DeliveryCounts::default()).collect(),
            policies,
            settings,
            replays: Vec::new(),
            served: 0,
            flows: FlowNumbers::default(),
            clock: Clock::default(),
            summer: Summer::detect(),
            seed,
            packets: 0,
            bytes: 0,
            unserved: 0,
            sources: Vec::new(),
            damage: None,
        })
    }

    /// Reads all of `capture`. Between batches, `is_wanted` decides whether to continue. Returns the reason why
    /// reading ended.
    pub fn read(
        &mut self,
        capture: &mut Capture,
        mut is_wanted: impl FnMut(Position) -> bool,
    ) -> Ended {
        self.leave();
        self.sources.push(capture.name().to_owned());
        let mut records = Vec::with_capacity(BATCH_RECORDS);
        loop {
            match capture.read_batch(&mut records, BATCH_RECORDS) {
                Ok(0) => return Ended::Over,
                Ok(_) => self.take(capture.interfaces(), &mut records),
                Err(error) => {
                    self.damage.get_or_insert(error.to_string());
                    return Ended::Damaged;
                }
            }
            if !is_wanted(capture.position()) {
                return Ended::Stopped;
            }
        }
    }

    /// Records that the capture `name` cannot be read at all; `why` is the reason.
    pub fn refuse_source(&mut self, name: &str, why: &str) {
        self.sources.push(name.to_owned());
        self.damage.get_or_insert(why.to_owned());
    }

    /// Returns the number of packets read so far.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Ends the comparison and returns the table. `partial` is the reason why reading stopped early, other than
    /// damage; `None` if reading did not stop early.
    #[must_use]
    pub fn finish(mut self, partial: Option<String>) -> ComparisonTable {
        self.leave();
        ComparisonTable::of(&self, partial)
    }

    /// Delivers all held packets, because the next packets belong to another capture.
    fn leave(&mut self) {
        let now = self.clock.now();
        let Self { replays, counts, .. } = self;
        for replays in core::mem::take(replays) {
            for (mut replay, counts) in replays.into_iter().zip(&mut *counts) {
                replay.empty(now, &mut |deliveries| counts.note(&deliveries));
                counts.add(replay.counters());
            }
        }
        self.served = 0;
    }

    fn take(&mut self, interfaces: &[Interface], records: &mut Vec<Record>) {
        for record in records.drain(..) {
            let interface = interfaces.get(record.interface as usize);
            self.take_one(&record, interface.map_or(UNKNOWN_LINK, |interface| interface.link));
        }
        let now = self.clock.now();
        for replays in &mut self.replays {
            for (replay, counts) in replays.iter_mut().zip(&mut self.counts) {
                replay.advance(now, &mut |deliveries| counts.note(&deliveries));
            }
        }
    }

    fn take_one(&mut self, record: &Record, link: LinkType) {
        let (now, mode) = (self.clock.advance(record.at), self.settings.checksums);
        let taken = intake::take(record, link, mode);
        self.packets += 1;
        self.bytes += taken.wire_bytes;
        let number = match &taken.kind {
            PacketKind::Segment(segment) => self.flows.number(&segment.key),
            _ => FlowNumbers::NONE,
        };
        let Some(network) = taken.network else { return self.unserved += 1 };
        let checksum = match (taken.is_whole, &taken.kind) {
            (true, _) => checksum_status(&network, mode, self.summer),
            (false, PacketKind::Segment(_)) if mode.accepts_cut() => ChecksumStatus::Verified,
            (false, _) => ChecksumStatus::Unknown,
        };
        let Network { packet, vlan, link: kind, .. } = network;
        let bytes = Numbered { bytes: packet, number };
        let frame = Frame { bytes, arrived_at: now, checksum, gso: None, vlan };
        let Some(replays) = self.replays_of(record.interface, kind) else {
            return self.unserved += 1;
        };
        for (replay, counts) in self.replays[replays].iter_mut().zip(&mut self.counts) {
            replay.push(frame.clone(), &mut |deliveries| counts.note(&deliveries));
        }
    }

    /// Returns the index of the replays of an interface. Creates the replays if necessary. `None` if there are
    /// too many interfaces.
    fn replays_of(&mut self, interface: u32, link: LinkKind) -> Option<usize> {
        let index = interface as usize;
        if self.replays.len() <= index {
            self.replays.resize_with(index + 1, Vec::new);
        }
        if self.replays[index].is_empty() {
            if self.served == MOST_INTERFACES {
                return None;
            }
            self.served += 1;
            let engines = engines(&self.policies, &self.settings, link, self.seed).ok()?;
            let poll = self.settings.poll;
            self.replays[index] = engines.into_iter().map(|it| Replay::new(it, poll)).collect();
        }
        Some(index)
    }
}

/// Creates an engine for each policy.
fn engines(
    policies: &[NamedPolicy],
    settings: &Settings,
    link: LinkKind,
    seed: u64,
) -> Result<Vec<Box<dyn Receive>>, ConfigError> {
    let trust = settings.checksums == ChecksumMode::Trust;
    let engine = |it: &NamedPolicy| it.engine(settings.poll, link, trust, seed);
    policies.iter().map(engine).collect()
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::Policy;

    use super::*;

    #[test]
    fn a_name_stays_in_its_cell_of_the_table() {
        let settings = Settings {
            poll: "time:50us".parse().unwrap(),
            checksums: ChecksumMode::Auto,
            costs: Costs::ASSUMED,
            costs_from: "assumed".to_owned(),
            rate_gbit_per_s: 10.0,
        };
        let begin = |name| {
            let policies = vec![NamedPolicy::of_policy(name, Policy::linux_gro())];
            PolicyComparison::new(policies, settings.clone())
        };
        assert!(begin("näher an 1 %").is_ok());
        for (name, shown) in [("a\nb", "\"a\\nb\""), ("a\u{7f}", "\"a\\u{7f}\"")] {
            let error = begin(name).unwrap_err().to_string();
            let wanted = format!("{shown}: the name of a policy has a line break or another");
            assert!(error.starts_with(&wanted) && !error.contains('\n'), "{error}");
        }
    }
}
