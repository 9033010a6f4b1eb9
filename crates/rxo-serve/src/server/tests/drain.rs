//! Clients that have not received all written bytes: they keep their places only while they make progress.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a client whose answer was written, of which it has not received a megabyte.
fn slow(hall: &mut Hall, asks: &str) -> Guest {
    let guest = hall.comes(asks, MUCH);
    guest.end.borrow_mut().on_its_way = 1_000_000;
    hall.settle();
    assert_eq!(hall.logged.len(), 1, "it was written");
    guest
}

#[test]
fn a_slow_client_keeps_its_place_until_it_has_the_answer() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    for asks in [ASK, ASK_LAST] {
        let mut hall = Hall::new(&scratch, Rules { clients: 1, ..RULES });
        let guest = slow(&mut hall, asks);
        for _ in 0..50 {
            assert!(hall.server.is_full() && !guest.is_gone());
            guest.end.borrow_mut().on_its_way -= 20_000;
            hall.later(SECOND);
        }
        assert!(guest.end.borrow().is_finished && !guest.end.borrow().is_reset);
        hall.later(SECOND);
        assert!(guest.is_gone() && hall.server.is_empty() && !guest.end.borrow().is_reset);
    }
}

#[test]
fn a_client_that_takes_nothing_more_is_reset() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    let guest = slow(&mut hall, ASK_LAST);
    (0..29).for_each(|_| hall.later(SECOND));
    assert!(!guest.is_gone());
    hall.later(SECOND);
    assert!(guest.is_gone() && guest.end.borrow().is_reset && hall.server.deadlines.is_empty());
}

/// The server reads a client's bytes while it waits for an answer to arrive: a connection with unread data
/// is reset when it is closed.
#[test]
fn a_client_may_speak_or_end_its_side_before_it_has_everything() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    let guest = slow(&mut hall, ASK_LAST);
    hall.says(&guest, ASK);
    assert!(guest.end.borrow().says.is_empty() && hall.logged.len() == 1);
    guest.end.borrow_mut().says_no_more = true;
    hall.server.ready(guest.token);
    hall.settle();
    hall.later(SECOND);
    assert!(!guest.is_gone(), "half closed, it still receives");
    guest.end.borrow_mut().on_its_way = 0;
    hall.server.ready(guest.token);
    hall.settle();
    assert!(guest.is_gone() && !guest.end.borrow().is_reset);
}

#[test]
fn a_client_that_asked_and_ended_its_side_hears_everything_and_the_end() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    let guest = hall.comes(ASK, MUCH);
    guest.end.borrow_mut().says_no_more = true;
    guest.end.borrow_mut().on_its_way = 1_000;
    hall.settle();
    assert!(guest.end.borrow().is_finished && !guest.is_gone());
    guest.end.borrow_mut().on_its_way = 0;
    hall.later(SECOND);
    assert!(guest.is_gone() && !guest.end.borrow().is_reset);
}

/// Few clients can be turned away at once, so a client that accepts a byte per second must not keep such a
/// place.
#[test]
fn whoever_is_turned_away_has_no_time_to_be_slow() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, Rules { per_peer: 1, ..RULES });
    let _held = hall.comes("", MUCH);
    let guest = hall.comes(ASK, MUCH);
    guest.end.borrow_mut().on_its_way = 250;
    hall.settle();
    for _ in 0..2 {
        guest.end.borrow_mut().on_its_way -= 1;
        hall.later(SECOND);
    }
    assert!(guest.is_gone() && guest.end.borrow().is_reset && hall.server.turned_away == 0);
}
