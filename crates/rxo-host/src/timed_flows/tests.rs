//! Compares the table with a naive list.

use proptest::prelude::*;
use rxo_tcp::{Config, Connection, Segment, SegmentOptions, State, TimeWait};
use rxo_wire::{SeqNumber, TcpFlags};

use super::*;

fn key(port: u32) -> FlowKey {
    FlowKey::v4(0x0a00_0001, 0x0a00_0002, port << 16 | 80, 0)
}

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// Returns the TIME-WAIT state of a connection that this side closed first.
fn left() -> TimeWait {
    let (pair, now) = (key(5_000).reversed(), at(1));
    let config = Config { timestamps: false, ..Config::default() };
    let secret = rxo_tcp::Secret([1, 2]);
    let mut tcp = Connection::<Vec<u8>>::open_passive(config, pair, secret).unwrap();
    let segment = |seq, ack, flags| Segment {
        seq: SeqNumber(seq),
        ack,
        flags,
        window: 1_000,
        options: SegmentOptions::default(),
        payload: None,
        ecn: rxo_tcp::Ecn::NotCapable,
        arrived_at: now,
    };
    tcp.on_arrival(now, segment(99, SeqNumber(0), TcpFlags::SYN).into());
    let iss = tcp.poll_transmit(now).unwrap().seq;
    tcp.on_arrival(now, segment(100, iss + 1, TcpFlags::ACK).into());
    tcp.shutdown().unwrap();
    while tcp.poll_transmit(now).is_some() {}
    tcp.on_arrival(now, segment(100, iss + 2, TcpFlags::ACK | TcpFlags::FIN).into());
    while tcp.poll_transmit(now).is_some() {}
    assert_eq!(tcp.state(), State::TimeWait);
    tcp.take_time_wait(now).unwrap().0
}

#[test]
fn an_entry_and_its_place_in_the_index_are_small() {
    assert!(size_of::<Entry<TimeWait>>() + size_of::<u32>() <= 84);
}

#[test]
fn one_that_begins_again_and_again_pushes_out_nobody() {
    let (mut table, left) = (TimedFlows::new(4, 7), left());
    (0..4).for_each(|port| assert_eq!(table.insert(key(port), left, at(60)), None));
    for micros in 0..1_000 {
        assert_eq!(table.restart(&key(3), Instant::from_micros(60_000_000 + micros)), None);
    }
    assert!((0..4).all(|port| table.get_mut(&key(port)).is_some()));
}

#[test]
fn the_key_of_nobody_is_not_kept() {
    let mut table = TimedFlows::new(1, 7);
    for until in 0..3 {
        assert_eq!(table.insert(FlowKey::NONE, (), at(until)), None);
    }
    assert_eq!((table.len(), table.take_due(at(9))), (0, None));
    table.insert(key(1), (), at(5));
    assert_eq!(table.take_due(at(9)), Some(key(1)));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32),
    Remove(u32),
    Restart(u32),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..30).prop_map(Step::Insert),
        1 => (0_u32..30).prop_map(Step::Remove),
        1 => (0_u32..30).prop_map(Step::Restart),
        1 => (0_u64..20).prop_map(Step::Pass),
    ]
}

proptest! {
    /// The oracle is a list in order of expiry. A removed entry occupies the ring until it expires, so the
    /// table may evict an entry earlier than the oracle, but only the oldest one.
    #[test]
    fn the_oldest_give_way(limit in 1_usize..9, steps in prop::collection::vec(step(), 0..200)) {
        let (mut table, left) = (TimedFlows::new(limit, 7), left());
        let mut oracle: Vec<(u32, Instant)> = Vec::new();
        let mut now = at(10);
        let gives_up = |oracle: &mut Vec<(u32, Instant)>, key_given_up: Option<FlowKey>| {
            if let Some(given_up) = key_given_up {
                assert_eq!(given_up, key(oracle.remove(0).0));
            }
        };
        for step in steps {
            let until = now + Duration::from_secs(60);
            match step {
                Step::Insert(port) if oracle.iter().all(|(other, _)| *other != port) => {
                    gives_up(&mut oracle, table.insert(key(port), left, until));
                    oracle.push((port, until));
                }
                Step::Restart(port) if oracle.iter().any(|(other, _)| *other == port) => {
                    let is_new = |(other, old): &(u32, Instant)| *other == port && *old != until;
                    if oracle.iter().any(is_new) {
                        oracle.retain(|(other, _)| *other != port);
                        gives_up(&mut oracle, table.restart(&key(port), until));
                        oracle.push((port, until));
                    } else {
                        prop_assert_eq!(table.restart(&key(port), until), None);
                    }
                }
                Step::Remove(port) => {
                    table.remove(&key(port));
                    oracle.retain(|(other, _)| *other != port);
                }
                Step::Pass(seconds) => {
                    now = now + Duration::from_secs(seconds);
                    while let Some(over) = table.take_due(now) {
                        prop_assert_eq!(over, key(oracle.remove(0).0));
                    }
                    prop_assert!(oracle.iter().all(|(_, until)| *until > now));
                }
                _ => {}
            }
            prop_assert!(oracle.len() <= limit);
            prop_assert_eq!(table.len(), oracle.len());
            for port in 0..30 {
                let is_there = oracle.iter().any(|(other, _)| *other == port);
                prop_assert_eq!(table.get_mut(&key(port)).is_some(), is_there);
            }
            prop_assert!(oracle.is_empty() || table.next_at().is_some());
        }
    }
}
