//! The last acknowledgement of each flow: a plain list without bounds.
//!
//! If a delivery shows only its last ACK, an ACK that repeats its predecessor must end the delivery, or the
//! repetition would be lost. So each flow's previous ACK must be known, even if it was delivered long ago.

use super::acks::{self, Point, is_before};
use crate::naive::{Ends, Segment};

const SYN: u16 = 0x002;
const RST: u16 = 0x004;
const ACK: u16 = 0x010;

#[derive(Default)]
pub(super) struct Memory {
    known: Vec<Known>,
}

struct Known {
    flow: Flow,
    /// The smallest possible value of the last acknowledgement number.
    ack: u32,
    /// The window of the last ACK; `None` if a later ACK may have been hidden from the oracle.
    window: Option<u16>,
}

type Flow = (Ends, (u16, u16));

/// The treatment of an ACK whose flow holds nothing.
pub(super) enum Opinion {
    /// The ACK may be held.
    Goes,
    /// The ACK passes, for this reason.
    Stays(&'static str),
}

impl Memory {
    /// Decides about `next`. If the flow's last ACK is uncertain, `next` becomes the last one, unless it was
    /// overtaken.
    pub(super) fn opinion(&mut self, next: &Segment) -> Opinion {
        let (ack, window) = match self.find(next) {
            None => (None, None),
            Some(known) => (Some(known.ack), known.window),
        };
        match (ack, window) {
            (Some(ack), _) if is_before(next.ack, ack) => Opinion::Stays("old_ack"),
            _ if acks::sack(next).is_some() => Opinion::Goes,
            (Some(ack), Some(window)) if acks::point(next) == (ack, window) => {
                Opinion::Stays("duplicate_ack")
            }
            (Some(_), Some(_)) => Opinion::Goes,
            _ => {
                self.delivered(next);
                Opinion::Stays("first_ack")
            }
        }
    }

    /// Returns `true` if the flow's last ACK is known and differs from `next`.
    pub(super) fn differs(&self, next: &Segment) -> bool {
        let said = self.find(next).and_then(|known| Some((known.ack, known.window?)));
        said.is_some_and(|said: Point| said != acks::point(next))
    }

    /// Records that `last` was delivered as the last frame of its flow's group. After data, or with a SACK
    /// list, a later ACK may repeat only its number or only its window.
    pub(super) fn delivered(&mut self, last: &Segment) {
        if !last.payload.is_empty() || acks::sack(last).is_some() {
            return self.raise(last);
        }
        self.forget(last);
        self.known.push(Known { flow: flow(last), ack: last.ack, window: Some(last.window) });
    }

    /// Records a segment that passed. Only segments that the receiver does not drop for their checksum count.
    pub(super) fn other(&mut self, segment: &Segment) {
        if segment.flags & (SYN | RST) != 0 {
            self.forget(segment);
        } else if segment.flags & ACK != 0 {
            self.raise(segment);
        }
    }

    /// Marks the last ACK of every flow between the two hosts as uncertain.
    pub(super) fn mark_uncertain(&mut self, ends: &Ends) {
        let of_hosts = self.known.iter_mut().filter(|known| known.flow.0 == *ends);
        of_hosts.for_each(|known| known.window = None);
    }

    fn raise(&mut self, segment: &Segment) {
        let known = self.find(segment).map(|known| known.ack);
        let ack = known.filter(|known| is_before(segment.ack, *known)).unwrap_or(segment.ack);
        self.forget(segment);
        self.known.push(Known { flow: flow(segment), ack, window: None });
    }

    fn forget(&mut self, segment: &Segment) {
        let flow = flow(segment);
        self.known.retain(|known| known.flow != flow);
    }

    fn find(&self, segment: &Segment) -> Option<&Known> {
        let flow = flow(segment);
        self.known.iter().find(|known| known.flow == flow)
    }
}

fn flow(segment: &Segment) -> Flow {
    (segment.ends.clone(), segment.ports)
}
