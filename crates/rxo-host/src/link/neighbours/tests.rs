//! The neighbour table alone, on virtual time.

use super::*;

const MAC: Mac = [2, 0, 0, 0, 0, 9];
const OTHER: Mac = [2, 0, 0, 0, 0, 10];

fn ip(host: u32) -> IpAddr {
    std::net::Ipv4Addr::from_bits(0x0a00_0000 + host).into()
}

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

fn table_of(limit: usize) -> Neighbours {
    Neighbours::new(limit, vec![ip(1)])
}

fn answer(host: u32) -> NeighbourMessage {
    NeighbourMessage {
        ip: ip(host),
        mac: Some(MAC),
        is_answer: true,
        overrides: true,
        is_for_us: true,
    }
}

fn request(host: u32) -> NeighbourMessage {
    NeighbourMessage { is_answer: false, ..answer(host) }
}

fn asked(table: &mut Neighbours, millis: u64) -> Vec<Ask> {
    let mut asked = Vec::new();
    table.on_timeout(at(millis), |ask| asked.push(ask));
    asked
}

fn resolved() -> Neighbours {
    let mut table = table_of(8);
    assert_eq!(table.resolve(ip(1), at(0)), NeighbourLookup::Ask);
    assert!(table.update(&answer(1), at(0)));
    table
}

/// RFC 4861, section 7.2.2: three requests, a second apart; then the failure is kept for one second.
#[test]
fn a_neighbour_is_asked_for_three_times() {
    let mut table = table_of(8);
    assert_eq!(table.resolve(ip(1), at(0)), NeighbourLookup::Ask);
    assert_eq!(table.resolve(ip(1), at(10)), NeighbourLookup::Pending);
    assert_eq!(asked(&mut table, 999), []);
    let everybody = Ask { ip: ip(1), mac: None };
    assert_eq!(asked(&mut table, 1_000), [everybody]);
    assert_eq!(asked(&mut table, 2_000), [everybody]);
    assert_eq!(asked(&mut table, 3_000), []);
    assert_eq!(table.resolve(ip(1), at(3_000)), NeighbourLookup::Failed);
    assert_eq!(asked(&mut table, 4_000), []);
    assert_eq!((table.len(), table.next_at()), (0, None));
    assert_eq!(table.resolve(ip(1), at(4_000)), NeighbourLookup::Ask);
}

/// RFC 4861, section 7.3.3: a neighbour that was silent for long is sent requests of its own, then removed.
#[test]
fn an_old_neighbour_is_probed_when_used() {
    let mut table = resolved();
    assert_eq!(table.resolve(ip(1), at(29_999)), NeighbourLookup::Mac(MAC));
    assert_eq!(asked(&mut table, 30_000), []);
    // It has five seconds to confirm the packet; then it is sent a request.
    assert_eq!(table.resolve(ip(1), at(31_000)), NeighbourLookup::Mac(MAC));
    assert_eq!(asked(&mut table, 35_999), []);
    let itself = Ask { ip: ip(1), mac: Some(MAC) };
    assert_eq!(asked(&mut table, 36_000), [itself]);
    assert_eq!(asked(&mut table, 37_000), [itself]);
    assert_eq!(asked(&mut table, 38_000), [itself]);
    assert_eq!(table.resolve(ip(1), at(38_500)), NeighbourLookup::Mac(MAC));
    assert_eq!(asked(&mut table, 39_000), []);
    assert_eq!(table.resolve(ip(1), at(39_000)), NeighbourLookup::Ask);
}

/// RFC 4861, section 7.3.1: confirmation by the transport makes requests needless.
#[test]
fn progress_confirms_a_neighbour() {
    let mut table = resolved();
    asked(&mut table, 30_000);
    table.resolve(ip(1), at(31_000));
    table.confirm(ip(1), at(32_000));
    assert_eq!(asked(&mut table, 61_999), []);
    assert_eq!(table.resolve(ip(1), at(61_999)), NeighbourLookup::Mac(MAC));
    table.confirm(ip(2), at(62_000));
    assert_eq!(table.len(), 1);
}

/// Only neighbours whose timer has expired are visited, so a postponed timer causes no wake-up.
#[test]
fn a_time_that_has_moved_wakes_nobody() {
    let mut table = resolved();
    assert_eq!(table.next_at(), Some(at(30_000)));
    table.confirm(ip(1), at(10_000));
    assert_eq!(table.next_at(), Some(at(40_000)));
    table.update(&request(2), at(10_000));
    assert_eq!(asked(&mut table, 40_000), []);
    assert_eq!(table.next_at(), Some(at(610_000)));
}

#[test]
fn a_neighbour_that_nobody_uses_is_forgotten() {
    let mut table = resolved();
    asked(&mut table, 30_000);
    asked(&mut table, 629_999);
    assert_eq!(table.len(), 1);
    asked(&mut table, 630_000);
    assert_eq!(table.len(), 0);
}

/// RFC 4861, section 7.2.5: without the override flag, another address only makes the entry stale.
#[test]
fn another_address_must_override() {
    let mut table = resolved();
    let doubt = NeighbourMessage { mac: Some(OTHER), overrides: false, ..answer(1) };
    assert!(!table.update(&doubt, at(1_000)));
    assert_eq!(table.resolve(ip(1), at(2_000)), NeighbourLookup::Mac(MAC));
    assert_eq!(asked(&mut table, 7_000), [Ask { ip: ip(1), mac: Some(MAC) }]);
    assert!(!table.update(&NeighbourMessage { overrides: true, ..doubt }, at(7_100)));
    assert_eq!(table.resolve(ip(1), at(7_200)), NeighbourLookup::Mac(OTHER));
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_learnt() {
    let mut table = table_of(8);
    table.update(&answer(1), at(0));
    table.update(&NeighbourMessage { is_for_us: false, ..request(2) }, at(0));
    table.update(&NeighbourMessage { mac: None, ..request(3) }, at(0));
    assert_eq!(table.len(), 0);
    table.update(&request(4), at(0));
    assert_eq!(table.resolve(ip(4), at(0)), NeighbourLookup::Mac(MAC));
}

/// An advertisement without an address does not resolve an incomplete entry (RFC 4861, section 7.2.5).
#[test]
fn an_answer_without_an_address_does_not_resolve() {
    let mut table = table_of(8);
    table.resolve(ip(1), at(0));
    assert!(!table.update(&NeighbourMessage { mac: None, ..answer(1) }, at(1)));
    assert_eq!(table.resolve(ip(1), at(2)), NeighbourLookup::Pending);
}

#[test]
fn a_flood_of_names_leaves_those_in_use() {
    let mut table = table_of(8);
    for host in 0..4 {
        table.resolve(ip(host), at(0));
        table.update(&answer(host), at(0));
    }
    for host in 100..10_000 {
        table.update(&request(host), at(1));
        assert!(table.len() <= 8);
    }
    for host in 0..4 {
        assert_eq!(table.resolve(ip(host), at(2)), NeighbourLookup::Mac(MAC), "{host}");
    }
}

/// A flood of requests evicts no neighbour in use. SYNs from addresses that do not exist cause such a flood.
#[test]
fn a_flood_of_questions_leaves_those_in_use() {
    let mut table = table_of(8);
    for host in 0..4 {
        table.resolve(ip(host), at(0));
        table.update(&answer(host), at(0));
    }
    for host in 100..10_000 {
        assert_eq!(table.resolve(ip(host), at(1)), NeighbourLookup::Ask);
        assert!(table.len() <= 8);
    }
    for host in 0..4 {
        assert_eq!(table.resolve(ip(host), at(2)), NeighbourLookup::Mac(MAC), "{host}");
    }
}

/// More neighbours in use than entries: the least recently used one is evicted, the gateway never.
#[test]
fn the_least_recently_used_gives_way() {
    let mut table = table_of(4);
    let mut use_at = |host, millis| {
        let known = table.resolve(ip(host), at(millis));
        table.update(&answer(host), at(millis));
        assert!(table.len() <= 4);
        known
    };
    for host in 1..5 {
        assert_eq!(use_at(host, host.into()), NeighbourLookup::Ask);
    }
    assert_eq!(use_at(2, 10), NeighbourLookup::Mac(MAC));
    // Neither the gateway, which is 1, nor 2 is evicted: first 3, then 4.
    assert_eq!(use_at(5, 11), NeighbourLookup::Ask);
    assert_eq!(use_at(6, 12), NeighbourLookup::Ask);
    assert_eq!(
        (use_at(1, 13), use_at(2, 14)),
        (NeighbourLookup::Mac(MAC), NeighbourLookup::Mac(MAC))
    );
    assert_eq!((use_at(3, 15), use_at(4, 16)), (NeighbourLookup::Ask, NeighbourLookup::Ask));
    assert_eq!(use_at(1, 1_000), NeighbourLookup::Mac(MAC));
}

/// Neighbours that are used in turn all get resolved, even if there are far more of them than entries.
#[test]
fn more_than_there_are_places_are_reached_in_turn() {
    let mut table = table_of(8);
    for round in 0..20_u32 {
        for host in 1..100 {
            let now = at(u64::from(round) * 100 + u64::from(host));
            if table.resolve(ip(host), now) == NeighbourLookup::Ask {
                assert!(table.update(&answer(host), now), "round {round}, {host}");
            }
        }
    }
}

#[test]
fn only_gateways_left_is_full() {
    let mut table = Neighbours::new(2, vec![ip(1), ip(2)]);
    for host in [1, 2] {
        table.resolve(ip(host), at(0));
        table.update(&answer(host), at(0));
    }
    assert_eq!(table.resolve(ip(3), at(1)), NeighbourLookup::Full);
}

proptest::proptest! {
    /// The indices agree with a scan of all entries.
    #[test]
    fn the_indices_are_right(
        steps in proptest::collection::vec((0_u8..5, 1_u32..20, 0_u64..40_000), 0..200)
    ) {
        let mut table = table_of(6);
        let mut millis = 0;
        for (kind, host, later) in steps {
            millis += later;
            match kind {
                0 | 1 => drop(table.resolve(ip(host), at(millis))),
                2 => drop(table.update(&answer(host), at(millis))),
                3 => drop(table.update(&request(host), at(millis))),
                _ => drop(asked(&mut table, millis)),
            }
            let entries = table.entries.iter();
            let order: BTreeSet<_> = entries.map(|(ip, entry)| table.turn_of(*ip, *entry)).collect();
            let waiting = table.entries.values().filter(|entry| !entry.has_mac()).count();
            proptest::prop_assert!(order == table.order && waiting == table.waiting);
            proptest::prop_assert!(table.len() <= 6 && waiting <= 4);
            let next = table.entries.values().map(|entry| entry.until).min();
            proptest::prop_assert_eq!(next, table.next_at());
        }
    }
}
