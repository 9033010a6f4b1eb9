//! The timers that determine when channels are reported, for IGMP or MLD on the interface of this host.
//!
//! Implements RFC 3376, section 5 and RFC 3810, section 6 for source-specific memberships. A change is reported
//! at once and repeated at random times; the querier's robustness variable is the number of reports. A query is
//! answered at a random time within the delay that the query permits.

use std::net::IpAddr;

use rxo_frame::{Duration, Instant};

use super::query::Query;
use super::report::{Record, RecordKind, records};
use super::{Channel, MOST_CHANNELS, Random};

/// The timers and pending reports of IGMP or MLD.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    robustness: u8,
    changes: Vec<Change>,
    /// The deadline for repeating `changes`; `None` if no change must be repeated.
    changes_at: Option<Instant>,
    /// The deadline for the answer to a query about all groups; `None` if no answer is pending.
    general_at: Option<Instant>,
    /// Pending answers about single groups, at most one per joined group.
    answers: Vec<Answer>,
}

/// A change that must be reported again.
#[derive(Clone, Copy, Debug)]
struct Change {
    kind: RecordKind,
    channel: Channel,
    /// Number of times that the change must still be reported.
    left: u8,
}

/// A pending answer about one group.
#[derive(Clone, Debug)]
struct Answer {
    group: IpAddr,
    /// The queried sources that must be reported; `None` for all joined sources of the group.
    sources: Option<Vec<IpAddr>>,
    at: Instant,
}

impl Default for Reporter {
    fn default() -> Self {
        Self {
            robustness: ROBUSTNESS,
            changes: Vec::new(),
            changes_at: None,
            general_at: None,
            answers: Vec::new(),
        }
    }
}

impl Reporter {
    /// Returns the deadline at which to call [`Reporter::take_due`]; `None` if no timer runs.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let answers = self.answers.iter().map(|answer| answer.at);
        answers.chain(self.changes_at).chain(self.general_at).min()
    }

    /// Records that `channel` was joined or left. Returns the records to send now: all changes that have not
    /// been repeated often enough (RFC 3376, section 5.1).
    pub(super) fn change(
        &mut self,
        kind: RecordKind,
        channel: Channel,
        (now, random): (Instant, &mut Random),
    ) -> Vec<Record> {
        self.changes.retain(|change| change.channel != channel);
        if self.changes.len() >= MOST_CHANNELS {
            // The oldest change has been reported at least once.
            self.changes.remove(0);
        }
        self.changes.push(Change { kind, channel, left: self.robustness });
        self.report_changes(now, random)
    }

    /// Schedules the answer to a query (RFC 3376, section 5.2). `channels` are the joined channels.
    pub(super) fn ask(
        &mut self,
        query: &Query,
        channels: &[Channel],
        (now, random): (Instant, &mut Random),
    ) {
        if query.knows_sources {
            // 0 means that the querier gives no value; then the default applies (section 4.1.6).
            self.robustness = if query.robustness == 0 { ROBUSTNESS } else { query.robustness };
        }
        let at = now + random.up_to(query.within);
        // A general answer that is sent earlier covers this query too.
        if self.general_at.is_some_and(|general| general <= at) {
            return;
        }
        match query.group {
            None if channels.is_empty() => {}
            None => self.general_at = Some(at),
            Some(group) => self.ask_group(group, query, channels, at),
        }
    }

    fn ask_group(&mut self, group: IpAddr, query: &Query, channels: &[Channel], at: Instant) {
        let wanted = channels.iter().filter(|it| it.group() == group).map(Channel::source);
        let asked: Vec<IpAddr> =
            wanted.filter(|it| query.sources.is_empty() || query.sources.contains(it)).collect();
        if asked.is_empty() {
            return;
        }
        let sources = (!query.sources.is_empty()).then_some(asked);
        let Some(answer) = self.answers.iter_mut().find(|answer| answer.group == group) else {
            self.answers.push(Answer { group, sources, at });
            return;
        };
        answer.at = answer.at.min(at);
        answer.sources = answer.sources.take().zip(sources).map(|(mut all, more)| {
            all.extend(more);
            all.sort_unstable();
            all.dedup();
            all
        });
    }

    /// Runs the timers that have expired at `now`. Returns the records to send, one list per report.
    pub(super) fn take_due(
        &mut self,
        channels: &[Channel],
        (now, random): (Instant, &mut Random),
    ) -> Vec<Vec<Record>> {
        let mut reports = Vec::new();
        if self.changes_at.is_some_and(|at| at <= now) {
            reports.push(self.report_changes(now, random));
        }
        let state = |channel: &Channel| (RecordKind::Wanted, *channel);
        if self.general_at.take_if(|at| *at <= now).is_some() {
            reports.push(records(channels.iter().map(state)));
        }
        let (due, later) =
            std::mem::take(&mut self.answers).into_iter().partition(|it| it.at <= now);
        self.answers = later;
        for answer in due {
            let Answer { group, sources, .. } = answer;
            let is_asked = |channel: &&Channel| {
                let is_among = |sources: &Vec<IpAddr>| sources.contains(&channel.source());
                channel.group() == group && sources.as_ref().is_none_or(is_among)
            };
            reports.push(records(channels.iter().filter(is_asked).map(state)));
        }
        reports.retain(|report| !report.is_empty());
        reports
    }

    fn report_changes(&mut self, now: Instant, random: &mut Random) -> Vec<Record> {
        let report = records(self.changes.iter().map(|change| (change.kind, change.channel)));
        self.changes.iter_mut().for_each(|change| change.left = change.left.saturating_sub(1));
        self.changes.retain(|change| change.left > 0);
        let repeats = !self.changes.is_empty();
        self.changes_at = repeats.then(|| now + random.up_to(UNSOLICITED_REPORT_INTERVAL));
        report
    }
}

/// Default of the robustness variable, the number of times that a change is reported (RFC 3376, section 8.1;
/// RFC 3810, section 9.1).
const ROBUSTNESS: u8 = 2;
/// Maximum time between two reports of a change (RFC 3376, section 8.11; RFC 3810, section 9.11).
const UNSOLICITED_REPORT_INTERVAL: Duration = Duration::from_secs(1);
