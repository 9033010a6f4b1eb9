//! Studies, which compute the effect of one policy, and of any number of other policies, on captured packets.
//!
//! A study processes batches of records, from one capture after the other, and produces a [`Report`]. The
//! modules, in the order in which a record passes through them:
//!
//! * `clock`: the record's time, corrected so that it never goes back.
//! * [`Filter`]: decides whether the record is included.
//! * `intake`: the packet for the engines. Truncated packets are padded if their checksums are accepted.
//! * `packet_kind`: the properties of the packet that are counted, parsed once.
//! * `encapsulation`: the packet inside a tunnel or a link that the engine does not read.
//! * `duplicates`: finds packets that the capture contains twice.
//! * `merges`: finds packets that were merged before the capture, although a link could carry them.
//! * `gaps`: finds the payload that the capturing program lost.
//! * `checksum`: checks the record's TCP or UDP checksum, once for all engines.
//! * `count`, `chosen`: totals of the traffic; the `flows`, and the traffic over time (`course`).
//! * `lane`: the engines of the record's interface, grouped by poll rule ([`Polls`]).
//! * `follower`: a point without an engine, as long as its results equal those of another point.
//! * `runs`: the deliveries that would result from other limits on segments per aggregate.
//! * `point`: one engine, and the counts of its deliveries.
//! * [`Part`]: the counts, which can be merged with those of other parts of the traffic. [`slices()`]: the bytes that
//!   each part reads.
//! * [`compare`]: several policies over the same packets, in one table.
//! * `headers`: the headers of a record as fields, for tables of packets.
//! * `receivers`: the host on which the capture was taken, and the addresses that receive most packets.
//! * `live`, `rates`: the frames of a live interface, and its rates over time.
//! * `outcome`, `notes`: the report. `read` does all of this for a capture file.
//!
//! # Contract
//! Equal records give equal reports. Memory is bounded by the flows ([`MAX_FLOWS`]), by the engines (a budget),
//! and by the packets that the engines hold. No record causes a panic or ends the study, whatever its bytes or
//! time.

mod checksum;
mod chosen;
mod clock;
pub mod compare;
mod count;
mod course;
mod duplicates;
mod encapsulation;
mod flows;
mod follower;
mod gaps;
#[cfg(feature = "arrow")]
mod headers;
mod intake;
mod lane;
mod lanes;
mod live;
mod merges;
mod notes;
mod outcome;
mod packet_kind;
mod part;
mod point;
mod points;
mod poll;
mod rates;
mod read;
mod receivers;
mod replay;
mod runs;
mod slices;
mod time;

use core::time::Duration;
use std::hash::{BuildHasher, RandomState};

use rxo_capture::{Direction, Filter, FilterError, Interface, LinkType, Network, Record};
use rxo_frame::{ChecksumStatus, ConfigError, Frame, Instant};
use rxo_wire::checksum::Summer;
use thiserror::Error;

pub use checksum::ChecksumMode;
pub(crate) use checksum::checksum_status;
pub(crate) use clock::Clock;
pub use flows::MAX_FLOWS;
#[cfg(feature = "arrow")]
pub(crate) use headers::Headers;
pub(crate) use live::Merged;
pub use live::Watched;
pub use part::{Mark, MergeError, Part, PartError, Span, Terms};
pub use point::Point;
pub use poll::{BadPollRule, HOST_BUDGET, Poll, PollRule, Polls, RING_PACKETS};
pub(crate) use rates::{RateCourse, RateStep, Rates};
pub use read::Ended;
pub(crate) use replay::Replay;
pub(crate) use runs::LIMITS;
pub use slices::{Slice, slices};

use self::checksum::Finding;
use self::chosen::Chosen;
use self::count::Count;
use self::duplicates::Duplicates;
use self::flows::{NO_FLOW, Sighting};
use self::intake::ParsedRecord;
use self::lanes::Lanes;
use self::packet_kind::{PacketKind, Segment};
use self::part::Recipe;
use self::points::Points;
use self::runs::Runs;
#[cfg(feature = "arrow")]
pub(crate) use self::time::parse_time;
use crate::numbered::Numbered;
use crate::projection::{ASSUMED_FROM, Costs};
use crate::report::{Protocol, Report, Source};
use crate::sweep::Grid;

/// The configuration of a study.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy and poll rule of the report. Only for this point are the results counted per flow.
    pub chosen: Point,
    /// Other settings to try in the same pass; `None` for no sweep.
    pub sweep: Option<Grid>,
    /// `true` to try the important settings, one at a time, for advice. Ignored if there is a sweep.
    pub advise: bool,
    /// The treatment of TCP and UDP checksums.
    pub checksums: ChecksumMode,
    /// The filter for the packets to include, in the syntax of [`Filter`]; `None` includes all packets.
    pub filter: Option<String>,
    /// The time for which a live interface is watched. Its rates are then counted. `None` for captures.
    pub live: Option<Duration>,
    /// `true` to leave out duplicates: packets that the capture has twice, as from a mirror port.
    pub dedup: bool,
    /// The costs of receiving, from which the decision is computed.
    pub costs: Costs,
    /// The origin of the costs, as printed in reports (for example "assumed").
    pub costs_from: String,
    /// The number of flows that the report lists.
    pub top: usize,
    /// The seed of the engines' hashes. It should be random, so that no capture can force hash collisions. The report
    /// does not depend on it. The flow table has a random seed of its own.
    pub seed: u64,
}

impl Settings {
    /// Returns the default configuration for the point `chosen`: no sweep, advice, checksums verified where possible, all packets,
    /// assumed costs, ten flows.
    #[must_use]
    pub fn new(chosen: Point) -> Self {
        Self {
            chosen,
            sweep: None,
            advise: true,
            checksums: ChecksumMode::Auto,
            filter: None,
            live: None,
            dedup: false,
            costs: Costs::ASSUMED,
            costs_from: ASSUMED_FROM.to_owned(),
            top: 10,
            seed: RandomState::new().hash_one(0),
        }
    }

    /// Returns the first name of a host or a network in the filter; `None` if there is none. A part of a series must have none,
    /// because each machine would look it up by itself, and might find another address.
    #[must_use]
    pub fn host_name(&self) -> Option<&str> {
        self.filter.as_deref().and_then(Filter::host_name)
    }

    /// Returns the choices for a report.
    fn terms(&self) -> Terms {
        Terms { costs: self.costs, costs_from: self.costs_from.clone(), top: self.top }
    }
}

/// The reason why a study cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StudyError {
    /// A number in the configuration of an engine is out of range.
    #[error(transparent)]
    Config(ConfigError),
    /// The filter cannot be used.
    #[error(transparent)]
    Filter(FilterError),
    /// The engines would need more memory than is permitted.
    #[error(
        "the engines of this sweep need {} MB; at most {} MB: sweep fewer values, or smaller flows, hold and poll",
        needed_bytes.div_ceil(1_000_000),
        most_bytes / 1_000_000
    )]
    Memory {
        /// The memory that the engines need, in bytes.
        needed_bytes: usize,
        /// The permitted memory, in bytes.
        most_bytes: usize,
    },
}

/// A study in progress, which takes the records of captures. See the module's documentation.
#[derive(Debug)]
pub struct Study {
    settings: Settings,
    filter: Option<Filter>,
    /// The reason why the filter cannot be used for a packet, for the first such packet; `None` if the filter
    /// could be used for all packets so far.
    refused: Option<FilterError>,
    summer: Summer,
    points: Points,
    clock: Clock,
    count: Count,
    duplicates: Duplicates,
    chosen: Chosen,
    lanes: Lanes,
    sources: Vec<Source>,
    recipe: Recipe,
    /// The timestamp of the first record; `None` until a record is read.
    first_at: Option<Instant>,
    /// The times of the first and the last packet that the filter accepted, on the clock; `None` if the filter
    /// has accepted no packet yet.
    accepted: Option<(Instant, Instant)>,
    /// The time of the earliest accepted packet in nanoseconds, as in its record.
    started_at_ns: u64,
    /// `true` if the next record is the first of a second or later capture.
    is_between: bool,
    /// The frames of a live interface that the host had merged.
    merged: Merged,
}

impl Study {
    /// Begins a study with the settings `settings`.
    ///
    /// # Errors
    /// [`StudyError`] if a policy or the filter is invalid, libpcap is needed for the filter and cannot be loaded, or all
    /// engines together need too much memory.
    ///
    /// # Examples
    /// ```no_run
    /// use rxo_capture::Capture;
    /// use rxo_coalesce::Policy;
    /// use rxo_trace::study::{Point, Settings, Study};
    ///
    /// let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse()? };
    /// let mut study = Study::new(Settings::new(point))?;
    /// for path in ["monday.pcapng", "tuesday.pcap.zst"] {
    ///     study.read(&mut Capture::open(path.as_ref())?, |_position| true);
    /// }
    /// println!("{}", rxo_trace::text::text(&study.finish(None)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(settings: Settings) -> Result<Self, StudyError> {
        let points = Points::of(&settings);
        let mut chosen = Chosen::new(MAX_FLOWS);
        chosen.rates = settings.live.map(Rates::new);
        chosen.runs = points.attempts.limits.as_ref().map(|_| Runs::default());
        Ok(Self {
            filter: filter(&settings).map_err(StudyError::Filter)?,
            refused: None,
            summer: Summer::detect(),
            clock: Clock::default(),
            count: Count::default(),
            duplicates: Duplicates::new(),
            chosen,
            lanes: Lanes::new(&points.all, &settings)?,
            sources: Vec::new(),
            recipe: Recipe::of(&settings),
            first_at: None,
            accepted: None,
            started_at_ns: u64::MAX,
            is_between: false,
            merged: Merged::default(),
            points,
            settings,
        })
    }

    /// Begins a capture; `name` is the user's name for the capture. If its first packet was captured at most a
    /// second after the last packet of the previous capture, the capture continues the previous one. Otherwise
    /// no packets are held across the boundary, and the time between the captures is not counted.
    pub fn begin_source(&mut self, name: &str) {
        self.lanes.forget_interfaces();
        self.is_between = self.packets() > 0;
        self.sources.push(Source { name: name.to_owned(), ..Source::default() });
    }

    /// Ends the current capture. `damage` is the reason why the capture was not read to its end; `None` if it
    /// was read completely.
    pub fn end_source(&mut self, format: &str, damage: Option<String>) {
        if let Some(source) = self.sources.last_mut() {
            format.clone_into(&mut source.format);
            source.damage = damage;
        }
    }

    /// Studies `records` of the current capture. `interfaces` are the interfaces that the capture has described
    /// so far.
    pub fn take(&mut self, interfaces: &[Interface], records: &mut Vec<Record>) {
        self.note(records);
        if self.is_between
            && let Some(first) = records.first()
        {
            self.begin_capture(first.at);
        }
        for record in records.drain(..) {
            self.take_one(interfaces, record);
        }
        self.lanes.advance(self.clock.now(), &mut self.chosen);
    }

    /// Records the times of records that are to be studied.
    fn note(&mut self, records: &[Record]) {
        if let Some(source) = self.sources.last_mut() {
            note_times(source, records);
        }
        if self.first_at.is_none() {
            self.first_at = records.first().map(|first| first.at);
        }
    }

    /// Changes to the next capture, whose first packet was captured at `at`.
    fn begin_capture(&mut self, at: Instant) {
        self.is_between = false;
        if self.clock.is_far(at) {
            self.lanes.rejoin(self.clock.now(), &mut self.chosen);
            self.clock.rejoin(at);
        }
    }

    /// Returns the number of packets studied so far, including those that were left out: by the filter, as
    /// duplicates, or because the host sent them.
    #[must_use]
    pub fn packets(&self) -> u64 {
        let left_out = if self.settings.dedup { self.count.duplicate_packets } else { 0 };
        self.count.packets + self.count.filtered_packets + self.count.sent_packets + left_out
    }

    #[inline]
    fn take_one(&mut self, interfaces: &[Interface], record: Record) {
        let now = self.clock.advance(record.at);
        self.chosen.clock = self.clock;
        let interface = interfaces.get(record.interface as usize);
        let link = interface.map_or(UNKNOWN_LINK, |interface| interface.link);
        let direction = match self.settings.live {
            // A live source gives only what the host receives.
            Some(_) => Some(Direction::In),
            None => record.direction(link),
        };
        if direction == Some(Direction::Out) {
            self.count.sent_packets += 1;
            return;
        }
        if !self.is_accepted(&record, interface) {
            self.count.filtered_packets += 1;
            return;
        }
        let taken = intake::take(&record, link, self.settings.checksums);
        if self.is_left_out(&taken, now) {
            return;
        }
        self.count.packet(&taken);
        if let Some((kind, is_read)) = taken.encapsulation {
            self.count.encapsulation(kind, is_read);
        }
        self.count.marked_packets += u64::from(direction.is_some());
        if let Some((_, last)) = self.accepted {
            self.count.gap(now.nanos_since(last));
        }
        self.accepted = Some((self.accepted.map_or(now, |(first, _)| first), now));
        self.started_at_ns = self.started_at_ns.min(record.at.as_nanos());
        self.chosen.arrive(now, taken.wire_bytes);
        let (flow, checksum) = match taken.kind {
            PacketKind::Segment(segment) => self.segment(&segment, &taken, record.at),
            PacketKind::Ip(_) | PacketKind::Short(_) | PacketKind::Other => {
                (NO_FLOW, ChecksumStatus::Unknown)
            }
        };
        if let Some(rates) = &mut self.chosen.rates {
            rates.arrive(flow, taken.kind.key(), now, taken.wire_bytes);
        }
        let Some(Network { link: kind, packet, vlan, .. }) = taken.network else {
            self.count.without_network(link);
            self.chosen.deliver_alone(now);
            return;
        };
        let bytes = Numbered { bytes: packet, number: flow };
        let frame = Frame { bytes, arrived_at: now, checksum, gso: None, vlan };
        if !self.lanes.push((record.interface, interface), kind, frame, &mut self.chosen) {
            self.count.unserved_packets += 1;
            self.chosen.deliver_alone(now);
        }
    }

    /// Returns `true` if the filter accepts the packet, or if there is no filter. A filter accepts no packet
    /// whose interface is unknown.
    #[inline]
    fn is_accepted(&mut self, record: &Record, interface: Option<&Interface>) -> bool {
        let Some(filter) = &mut self.filter else { return true };
        let Some(interface) = interface else { return false };
        filter.accepts(record, interface.link).unwrap_or_else(|error| {
            self.refused.get_or_insert(error);
            false
        })
    }

    /// Counts the packet if it is a duplicate. Returns `true` if the packet is a duplicate and the settings
    /// exclude duplicates.
    #[inline]
    fn is_left_out(&mut self, taken: &ParsedRecord, now: Instant) -> bool {
        let (PacketKind::Segment(segment), Some(network)) = (&taken.kind, &taken.network) else {
            return false;
        };
        let is_duplicate = self.duplicates.is_duplicate(segment, network.packet.as_ref(), now);
        self.count.duplicate_packets += u64::from(is_duplicate);
        is_duplicate && self.settings.dedup
    }

    /// Counts a TCP segment or datagram. Returns the number of its flow and its checksum status.
    #[inline]
    fn segment(
        &mut self,
        segment: &Segment,
        taken: &ParsedRecord,
        at: Instant,
    ) -> (u32, ChecksumStatus) {
        let bytes = taken.network.as_ref().map(|network| network.packet.as_ref());
        let bytes = bytes.unwrap_or_default();
        // Without a capture the number wraps to one that no capture has.
        let file = self.sources.len().wrapping_sub(1) as u32;
        let seen = Sighting { at_ns: at.as_nanos(), file };
        let number = self.chosen.flows.find_or_add(segment, seen);
        let flow = self.chosen.flows.get_mut(number);
        let mode = self.settings.checksums;
        let finding = (taken.is_whole && mode != ChecksumMode::Trust)
            .then(|| checksum::check(segment, bytes, self.summer))
            .flatten();
        self.count.segment(segment, finding, taken);
        if let Some(flow) = flow {
            let can_join = flow.count(segment, bytes, taken.wire_bytes, seen);
            self.count.aggregatable_pure_acks += u64::from(can_join);
            if segment.protocol == Protocol::Tcp {
                let (missing, late) = flow.gaps.take(segment, bytes);
                self.count.missing_bytes += u64::from(missing);
                self.count.late_bytes += u64::from(late);
            }
            let merged_bytes = flow.merges.take(segment, bytes);
            self.count.merged_packets += u64::from(merged_bytes > 0);
            self.count.merged_bytes += merged_bytes;
            if finding == Some(Finding::Unfinished) {
                flow.count_unfinished();
            }
        } else {
            self.count.untracked_packets += 1;
        }
        let status = match finding {
            Some(finding) => checksum::status(mode, finding, segment),
            None if !taken.is_whole && mode.accepts_cut() => ChecksumStatus::Verified,
            None => ChecksumStatus::Unknown,
        };
        (number, status)
    }

    /// Ends the study and returns the report. `partial` is the reason why reading stopped early, other than damage;
    /// `None` if reading did not stop early.
    #[must_use]
    pub fn finish(self, partial: Option<String>) -> Report {
        // A part's recipe cannot express a sweep of points without axes, so the study's own settings are used.
        let settings = self.settings.clone();
        outcome::report(&self.into_part(None, partial), &settings, &settings.terms())
    }
}

/// Creates the filter of the settings. The filter must compile for Ethernet if a live interface is watched,
/// otherwise for at least one of the link types whose fields filters can name.
fn filter(settings: &Settings) -> Result<Option<Filter>, FilterError> {
    const LINKS: [LinkType; 4] =
        [LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::LINUX_SLL2, LinkType(105)];
    let links = if settings.live.is_some() { &LINKS[..1] } else { &LINKS };
    settings.filter.as_deref().map(|text| Filter::new(text, links)).transpose()
}

/// Counts the records of a capture, and extends the capture's time span. The span may be slightly wrong if
/// records are slightly out of order.
fn note_times(source: &mut Source, records: &[Record]) {
    let (Some(first), Some(last)) = (records.first(), records.last()) else { return };
    if source.packets == 0 {
        source.started_at_ns = first.at.as_nanos();
    }
    source.packets += records.len() as u64;
    let since_ns = last.at.as_nanos().saturating_sub(source.started_at_ns);
    source.duration_ns = source.duration_ns.max(since_ns);
}

/// The link type of packets whose interface the capture does not describe: an unused number.
pub(crate) const UNKNOWN_LINK: LinkType = LinkType(u16::MAX);
