//! Compares two senders for each flow: one receives the original frames, the other the deliveries.

use std::collections::BTreeMap;

use super::{Incoming, Lasting, Sender};
use crate::Script;
use crate::naive::{Ends, Reading, read};
use crate::oracle::{PureAcks, Rules};
use crate::promise::{Observed, Shown};

/// Checks that after every delivery both senders of its flow have the same state.
///
/// In record form all state must agree: the number of ACKs, every RTT sample, every echo. In single form only
/// [`Lasting`] must agree: SND.UNA, window, duplicates, SACK and marks ([`super::Marks`] defines their
/// preserved part). Of the ACKs in between, only the number is known. With `sack_superset`, the number of
/// SACK lists may differ too, but not what they report.
///
/// Both senders receive data frame by frame, because other promises cover data.
///
/// # Panics
/// If the states differ.
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
    /// Number of ACKs that the second sender knows only as a count.
    counted: u64,
}

impl Pair {
    fn take(&mut self, script: &Script, shown: &Shown, rules: &Rules) {
        // A real sender knows where its connection began. Here it takes that from the first ACK.
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
