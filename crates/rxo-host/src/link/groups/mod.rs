//! Multicast groups: the channels that this host has joined, and the reports about them to routers and
//! switches.
//!
//! Memberships are source-specific (RFC 4607): a channel is a group and one source. IPv4 memberships are
//! reported by IGMPv3 (RFC 3376, RFC 9776), IPv6 memberships by MLDv2 (RFC 3810, RFC 9777). Reports are also
//! sent on links without neighbours, such as a TUN device.
//!
//! IGMPv1, IGMPv2 and MLDv1 do not support sources: a report in such a version would request packets of every
//! source. RFC 4604, section 2.2 forbids these reports for source-specific groups. So a query of an older
//! version is answered with a report of the current version, which snooping switches understand and old routers
//! ignore. Such queries are counted ([`LinkCounters::older_queriers`](super::LinkCounters)).
//!
//! * `channel.rs`: a group with its source.
//! * `query.rs`, `igmp.rs`, `mld.rs`: parsing of queries.
//! * `report.rs`: building of reports.
//! * `reporter.rs`: the timers that decide when to report.
//!
//! Contract: the module is sans-IO, like the whole link. Random delays are derived from the seed in
//! [`LinkConfig`](super::LinkConfig). Memory is bounded by [`MOST_CHANNELS`]; no query increases it.

mod channel;
pub(super) mod igmp;
pub(super) mod mld;
mod query;
pub(super) mod report;
mod reporter;

use std::net::IpAddr;

use rxo_frame::{Duration, Instant};

pub use self::channel::{Channel, ChannelError};
pub(super) use self::query::Query;
use self::report::{Record, RecordKind};
use self::reporter::Reporter;

/// The memberships of one link.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The joined channels, sorted.
    channels: Vec<Channel>,
    /// Number of members of each channel on this host, parallel to `channels`.
    members: Vec<u32>,
    v4: Reporter,
    v6: Reporter,
    random: Random,
}

impl Groups {
    /// Creates an empty set of memberships. `seed` determines the random delays.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            channels: Vec::new(),
            members: Vec::new(),
            v4: Reporter::default(),
            v6: Reporter::default(),
            random: Random(seed),
        }
    }

    /// Returns `true` if this host has joined the channel of `source` and `group`.
    pub(super) fn wants(&self, source: IpAddr, group: IpAddr) -> bool {
        let mut same = self.channels.iter().filter(|channel| channel.group() == group);
        same.any(|channel| channel.source() == source)
    }

    /// Returns `true` if this host has joined `group`, with any source.
    pub(super) fn has(&self, group: IpAddr) -> bool {
        self.channels.iter().any(|channel| channel.group() == group)
    }

    /// Returns the groups that this host has joined, each once.
    pub(super) fn groups(&self) -> impl Iterator<Item = IpAddr> {
        self.channels
            .chunk_by(|a, b| a.group() == b.group())
            .filter_map(|same| same.first())
            .map(Channel::group)
    }

    /// Adds a member to `channel`. Returns the records to report now; empty if the channel was joined
    /// already.
    ///
    /// # Errors
    /// [`ChannelError::Full`] if [`MOST_CHANNELS`] channels are joined.
    pub(super) fn join(
        &mut self,
        channel: Channel,
        now: Instant,
    ) -> Result<Vec<Record>, ChannelError> {
        match self.channels.binary_search(&channel) {
            Ok(place) => {
                self.members[place] += 1;
                Ok(Vec::new())
            }
            Err(_) if self.channels.len() >= MOST_CHANNELS => {
                Err(ChannelError::Full { most: MOST_CHANNELS })
            }
            Err(place) => {
                self.channels.insert(place, channel);
                self.members.insert(place, 1);
                Ok(self.change(RecordKind::Joined, channel, now))
            }
        }
    }

    /// Removes a member of `channel`, if there is one. Returns the records to report now; empty while members
    /// remain.
    pub(super) fn leave(&mut self, channel: Channel, now: Instant) -> Vec<Record> {
        let Ok(place) = self.channels.binary_search(&channel) else { return Vec::new() };
        self.members[place] -= 1;
        if self.members[place] > 0 {
            return Vec::new();
        }
        self.channels.remove(place);
        self.members.remove(place);
        self.change(RecordKind::Left, channel, now)
    }

    fn change(&mut self, kind: RecordKind, channel: Channel, now: Instant) -> Vec<Record> {
        let Self { v4, v6, random, .. } = self;
        let reporter = if channel.group().is_ipv4() { v4 } else { v6 };
        reporter.change(kind, channel, (now, random))
    }

    /// Schedules the answer to a query, which is of IGMP if `is_v4` is `true`, otherwise of MLD.
    pub(super) fn ask(&mut self, query: &Query, is_v4: bool, now: Instant) {
        let Self { channels, v4, v6, random, .. } = self;
        let (v4_channels, v6_channels) = by_version(channels);
        match is_v4 {
            true => v4.ask(query, v4_channels, (now, random)),
            false => v6.ask(query, v6_channels, (now, random)),
        }
    }

    /// Returns the deadline at which to call [`Groups::take_due`]; `None` if no timer runs.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.v4.next_at().into_iter().chain(self.v6.next_at()).min()
    }

    /// Runs the timers that have expired at `now`. Returns the records to send, one list per report; all
    /// groups of a report are of one IP version.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Vec<Record>> {
        let Self { channels, v4, v6, random, .. } = self;
        let (v4_channels, v6_channels) = by_version(channels);
        let mut reports = v4.take_due(v4_channels, (now, random));
        reports.extend(v6.take_due(v6_channels, (now, random)));
        reports
    }
}

/// Splits sorted channels into those of IPv4 and those of IPv6.
fn by_version(channels: &[Channel]) -> (&[Channel], &[Channel]) {
    channels.split_at(channels.partition_point(|channel| channel.group().is_ipv4()))
}

/// A pseudorandom number generator (SplitMix64; Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    /// Returns a random duration above zero and at most `most`; one nanosecond if `most` is zero.
    fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let most_ns = (most.as_nanos() as u64).max(1);
        Duration::from_nanos((mixed ^ mixed >> 31) % most_ns + 1)
    }
}

/// Maximum number of joined channels. A report about all of them fits into a packet of 1,280 bytes.
pub(super) const MOST_CHANNELS: usize = 32;
