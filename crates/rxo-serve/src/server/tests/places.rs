//! Admission of clients, turning them away, and the time that each may stay.

use super::*;

#[test]
fn whoever_finds_all_places_taken_is_served_and_not_kept() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, Rules { clients: 4, ..RULES });
    let silent = [(); 3].map(|()| hall.comes("", MUCH));
    for _ in 0..20 {
        assert!(!hall.server.is_full());
        let guest = hall.comes(ASK, MUCH);
        assert!(hall.server.is_full());
        guest.end.borrow_mut().says_no_more = true;
        hall.settle();
        assert!(guest.heard().contains("Connection: close") && guest.is_gone());
    }
    assert_eq!(hall.logged.len(), 20);
    hall.later(RULES.limits.idle);
    assert!(silent.iter().all(Guest::is_gone) && hall.server.is_empty());
}

#[test]
fn an_address_with_enough_places_is_turned_away() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, Rules { per_peer: 2, ..RULES });
    let held = [(); 2].map(|()| hall.comes("", MUCH));
    let third = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(third.heard().starts_with("HTTP/1.1 503 "), "{}", third.heard());
    assert!(third.heard().contains("Connection: close"));
    // Closing a connection with unread bytes would reset it, and the answer would be lost.
    assert!(third.end.borrow().is_finished && third.end.borrow().says.is_empty());
    assert!(!third.is_gone() && !hall.server.is_full());
    third.end.borrow_mut().says_no_more = true;
    hall.server.ready(third.token);
    hall.settle();
    assert!(third.is_gone());
    let other = hall.comes_from("10.0.0.8:1000", ASK, MUCH);
    hall.settle();
    assert!(other.heard().ends_with("hello"));
    assert_eq!(hall.logged[0].1.status, 503);
    // A client that does not accept even the refusal is dropped.
    let stubborn = hall.comes("", 0);
    hall.settle();
    hall.later(RULES.limits.linger);
    assert!(stubborn.is_gone());
    held[0].end.borrow_mut().says_no_more = true;
    hall.server.ready(held[0].token);
    hall.settle();
    let again = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(again.heard().ends_with("hello"));
}

#[test]
fn servers_that_count_together_turn_away_as_one() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let (places, rules) = (Places::default(), Rules { per_peer: 2, ..RULES });
    let [mut one, mut other] = [(); 2].map(|()| {
        let hall = Hall::new(&scratch, rules);
        Hall { server: hall.server.counting_with(places.clone()), ..hall }
    });
    let first = one.comes("", MUCH);
    let _second = other.comes("", MUCH);
    let third = one.comes(ASK, MUCH);
    one.settle();
    assert!(third.heard().starts_with("HTTP/1.1 503 "), "{}", third.heard());
    first.end.borrow_mut().says_no_more = true;
    one.server.ready(first.token);
    one.settle();
    let again = other.comes(ASK, MUCH);
    other.settle();
    assert!(again.heard().ends_with("hello"));
}

#[test]
fn those_who_are_turned_away_take_no_place_and_are_few() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, Rules { clients: 2, per_peer: 1, ..RULES });
    let _held = hall.comes("", MUCH);
    let away: Vec<_> = (0..2 * MOST_TURNED_AWAY).map(|_| hall.comes(ASK, MUCH)).collect();
    hall.settle();
    let told = |guest: &&Guest| guest.heard().starts_with("HTTP/1.1 503 ");
    assert_eq!(away.iter().filter(told).count(), MOST_TURNED_AWAY);
    assert!(away[MOST_TURNED_AWAY..].iter().all(Guest::is_gone) && !hall.server.is_full());
    let other = hall.comes_from("10.0.0.8:1000", ASK, MUCH);
    hall.settle();
    assert!(other.heard().ends_with("hello") && hall.server.is_full());
    hall.later(RULES.limits.linger);
    assert!(away.iter().all(Guest::is_gone) && hall.server.turned_away == 0);
}

#[test]
fn a_client_that_says_nothing_is_left_and_one_that_dawdles_is_told() {
    let scratch = Scratch::new(&[]);
    let mut hall = Hall::new(&scratch, RULES);
    let (silent, slow) = (hall.comes("", MUCH), hall.comes("GET / HTTP/1.1\n", MUCH));
    let empty_lines = hall.comes("", MUCH);
    hall.settle();
    (0..9).for_each(|_| hall.later(Duration::from_secs(1)));
    assert!(slow.heard().is_empty());
    hall.later(Duration::from_secs(1));
    assert!(slow.heard().starts_with("HTTP/1.1 408 "), "{}", slow.heard());
    for _ in 10..15 {
        assert!(!silent.is_gone() && !empty_lines.is_gone());
        hall.says(&empty_lines, "\n");
        hall.later(Duration::from_secs(1));
    }
    assert!(silent.is_gone() && empty_lines.is_gone() && slow.is_gone());
    assert_eq!(hall.logged.len(), 1);
}

#[test]
fn a_client_that_takes_nothing_or_too_little_is_reset() {
    let scratch = Scratch::new(&[]);
    File::create(scratch.path().join("file")).unwrap().set_len(64 << 20).unwrap();
    let rules = Rules {
        limits: Limits { least_rate: 1 << 20, piece: Duration::from_secs(2), ..RULES.limits },
        readers: 0,
        ..RULES
    };
    let mut hall = Hall::new(&scratch, rules);
    let (nothing, little) = (hall.comes(ASK, 0), hall.comes(ASK, 0));
    hall.settle();
    for second in 0..60 {
        assert_eq!(nothing.is_gone(), second >= 2, "after {second} s");
        hall.takes(&little, 512 << 10);
        hall.later(Duration::from_secs(1));
        if little.is_gone() {
            break;
        }
    }
    assert!(little.is_gone() && little.end.borrow().is_reset && nothing.end.borrow().is_reset);
    assert!(hall.logged.iter().all(|(_, exchange)| !exchange.is_complete));
    assert!(hall.server.deadlines.is_empty() && hall.server.shared.pages.is_within_bounds());
}
