//! Two senders of each flow: one is fed the frames as they came, one what was delivered of them.

use std::collections::BTreeMap;

use super::{Incoming, Lasting, Sender};
use crate::Script;
use crate::naive::{Ends, Reading, read};
use crate::oracle::{PureAcks, Rules};
use crate::promise::{Observed, Shown};

/// After every delivery both senders of its flow know the same.
///
/// In record form that is everything: the number of ACKs, every RTT sample, every echo. In single form
/// it is [`Lasting`]: SND.UNA, window, duplicates, SACK and marks ([`super::Marks`] says what no lost
/// mark means); of the ACKs in between only their number is known. Where a SACK list may stand for one
/// that it covers, the number of lists is not kept either, but what they report is.
///
/// Data is fed frame by frame in both: what becomes of it is promised elsewhere.
///
/// # Panics
/// When they do not.
pub fn senders_agree(script: &Script, observed: &Observed) {
    let rules = script.setup.rules();
    let mut flows: BTreeMap<_, Pair> = BTreeMap::new();
    for shown in observed.deliveries() {
        if let Some(flow) = flow(script, shown.frames[0]) {
            let pair = flows.entry(flow).or_default();
            pair.take(script, shown, &rules);
            pair.compare(shown, &rules);
        }
    }
}

#[derive(Default)]
struct Pair {
    of_frames: Sender,
    of_deliveries: Sender,
    /// ACKs that the second was told of, but not shown.
    counted: u64,
}

impl Pair {
    fn take(&mut self, script: &Script, shown: &Shown, rules: &Rules) {
        // A connection's first ACK finds a sender that knows where it began; here that is with it.
        let acks = shown.frames.iter().filter_map(|index| Incoming::of_frame(script, *index));
        if let Some(first) = acks.filter(Incoming::counts).map(|ack| ack.ack).next() {
            self.of_frames.begin(first);
            self.of_deliveries.begin(first);
        }
        for index in &shown.frames {
            feed(&mut self.of_frames, script, *index);
        }
        match (&shown.acks, rules.pure_acks) {
            (Some(acks), PureAcks::Record) => {
                let records = acks.records.iter().map(Incoming::of_record);
                records.for_each(|record| self.of_deliveries.take(&record));
            }
            (Some(acks), _) => {
                feed(&mut self.of_deliveries, script, acks.last);
                self.counted += acks.count as u64 - 1;
            }
            (None, _) => {
                shown.frames.iter().for_each(|index| feed(&mut self.of_deliveries, script, *index));
            }
        }
    }

    fn compare(&self, shown: &Shown, rules: &Rules) {
        let frames = &shown.frames;
        let (told, seen) = (&self.of_deliveries, &self.of_frames);
        assert_eq!(told.acks + self.counted, seen.acks, "number of ACKs after {frames:?}");
        if rules.pure_acks == PureAcks::Record {
            assert_eq!(told, seen, "told (left) and sent (right) differ after {frames:?}");
        } else {
            let lasting = |sender: &Sender| lasting(sender, rules);
            let (told, seen) = (lasting(told), lasting(seen));
            assert_eq!(told, seen, "told (left) and sent (right) differ after {frames:?}");
        }
    }
}

fn lasting(sender: &Sender, rules: &Rules) -> Lasting {
    let mut lasting = sender.lasting.clone();
    if rules.sack_superset {
        lasting.selective = 0;
    }
    lasting
}

fn feed(sender: &mut Sender, script: &Script, index: usize) {
    if let Some(ack) = Incoming::of_frame(script, index) {
        sender.take(&ack);
    }
}

fn flow(script: &Script, index: usize) -> Option<(Ends, (u16, u16))> {
    match read(script.frame(index), script.setup.link) {
        Reading::Segment(segment) => Some((segment.ends, segment.ports)),
        _ => None,
    }
}
