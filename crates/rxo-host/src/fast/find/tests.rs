//! Flows that share a slot: each gets its ACKs in the order of arrival.

use proptest::prelude::*;
use rxo_frame::{ChecksumStatus, LinkKind};
use rxo_wire::checksum::ipv4_header_checksum;

use super::*;
use crate::fast::order::spot_of_plain;
use crate::fast::{FastModules, FastPath};

/// A lookup in which every source port has a connection; its index is the port.
struct All(AckState);

impl All {
    fn new() -> Self {
        let mut state = AckState::new(true);
        state.terms.is_synchronized = true;
        Self(state)
    }
}

impl Lookup for All {
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        Some(key.source_port().into())
    }

    fn at(&self, place: u32, key: &FlowKey) -> Option<ConnectionSnapshot> {
        let is_it = place == key.source_port().into();
        is_it.then_some(ConnectionSnapshot { place, state: self.0, has_backlog: false })
    }

    fn state(&mut self, _place: u32) -> Option<&mut AckState> {
        Some(&mut self.0)
    }

    fn is_held(&self, _key: &FlowKey) -> bool {
        false
    }
}

/// Builds a pure ACK of `number` from `port`. ACKs with different `ttl` do not match each other's prediction.
fn ack(port: u16, ttl: u8, number: u32) -> Vec<u8> {
    let mut packet = vec![0; 52];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 52]);
    packet[8..10].copy_from_slice(&[ttl, 6]);
    packet[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..24].copy_from_slice(&80_u16.to_be_bytes());
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    packet[32..34].copy_from_slice(&[0x80, 0x10]);
    packet[40..44].copy_from_slice(&[1, 1, 8, 10]);
    let sum = ipv4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Returns two ports whose flows share a slot, and one whose flow has another slot.
fn ports() -> [u16; 3] {
    let spot_of = |port: u16| spot_of_plain(&ack(port, 64, 0), true);
    let shares = |port: &u16| spot_of(*port) == spot_of(1);
    let same = (2..u16::MAX).find(shares).expect("there are fewer spots than ports");
    let other = (2..u16::MAX).find(|port| !shares(port)).expect("there are several spots");
    [1, same, other]
}

/// Runs a batch of ACKs through the fast path; an ACK's number is its position in the batch. Returns
/// connection and number of each ACK, in the order in which the connections receive them.
fn given(batch: impl IntoIterator<Item = (u16, u8)>) -> Vec<(u32, u32)> {
    let mut fast = Fast::new(&FastPath::default(), LinkKind::RawIp, [0; 6], 1);
    let mut connections = All::new();
    assert!(fast.begin(FastModules::PURE_ACK));
    for ((port, ttl), number) in batch.into_iter().zip(0..) {
        let bytes = ack(port, ttl, number);
        let frame =
            Frame { checksum: ChecksumStatus::Verified, ..Frame::new(&bytes[..], Instant::ZERO) };
        let is_consumed = fast.takes_expected(&frame)
            || fast.inspect(&mut connections, Instant::ZERO, &frame) == Verdict::Consumed;
        assert!(is_consumed, "number {number}");
    }
    let mut given = Vec::new();
    let runs = (0..fast.gathered.numbers()).filter_map(|number| fast.gathered.run(number));
    for (place, records) in runs {
        given.extend(records.flatten().map(|record| (place, record.ack.0)));
    }
    given
}

fn of_place(given: &[(u32, u32)], place: u16) -> Vec<u32> {
    given.iter().filter(|(at, _)| *at == place.into()).map(|(_, number)| *number).collect()
}

/// The sixth ACK of the first flow does not match the prediction, so it begins a run after the run of the
/// second flow. The seventh ACK matches the prediction that was made before the sixth.
#[test]
fn an_expected_ack_does_not_overtake_one_that_was_not() {
    let [first, second, _] = ports();
    // Enough ACKs to make the list of records grow.
    let begin = [(first, 64); 5];
    let given = given(begin.into_iter().chain([(second, 64), (first, 63), (first, 64)]));
    assert_eq!(of_place(&given, first), [0, 1, 2, 3, 4, 6, 7]);
    assert_eq!(of_place(&given, second), [5]);
}

proptest! {
    #[test]
    fn every_flow_gets_its_acks_in_order(
        batch in prop::collection::vec((0_usize..3, 63_u8..65), 0..60),
    ) {
        let ports = ports();
        let given = given(batch.iter().map(|(flow, ttl)| (ports[*flow], *ttl)));
        for (flow, port) in ports.iter().enumerate() {
            let came: Vec<u32> =
                (0..).zip(&batch).filter(|(_, (of, _))| *of == flow).map(|(n, _)| n).collect();
            prop_assert_eq!(of_place(&given, *port), came);
        }
    }
}
