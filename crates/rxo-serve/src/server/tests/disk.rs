//! Access to the disk: cached pages that clients share, and the reader threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};

use super::*;

/// Clients that do not read occupy no pages: the cache stays within its size, whatever they request.
#[test]
fn ten_thousand_slow_readers_share_the_cache() {
    const READERS: usize = 10_000;
    let scratch = Scratch::new(&[]);
    for number in 0..100 {
        scratch.file(&format!("file{number}"), &large(number + 1));
    }
    let rules = Rules { clients: READERS, per_peer: READERS, ..RULES };
    let mut hall = Hall::new(&scratch, rules);
    let ask = |number: usize| format!("GET /file{} HTTP/1.1\nHost: x\n\n", number % 100);
    // They also share a hundred open files.
    let guests: Vec<_> = (0..READERS).map(|number| hall.comes(&ask(number), 1_000)).collect();
    hall.settle();
    assert!(guests.iter().all(|guest| guest.heard().starts_with("HTTP/1.1 200 OK")));
    let shared = &hall.server.shared;
    assert!(shared.pages.is_within_bounds());
    assert!(hall.server.sessions.values().all(Session::holds_no_page));
    hall.later(Duration::from_secs(31));
    assert!(guests.iter().all(Guest::is_gone) && hall.server.is_empty());
    assert!(hall.server.deadlines.is_empty() && hall.server.queue.is_empty());
}

/// A thread reads the directory; other clients proceed meanwhile.
#[test]
fn readers_wake_the_server_when_they_are_done() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let (woken, wakes) = mpsc::channel();
    let wake = Arc::new(move || woken.send(()).unwrap());
    let mut hall = Hall::woken(&scratch, Rules { readers: 2, ..RULES }, wake);
    let lists: Vec<_> = (0..5).map(|_| hall.comes("GET / HTTP/1.1\nHost: x\n\n", MUCH)).collect();
    let gone = hall.comes("GET / HTTP/1.1\nHost: x\n\n", MUCH);
    hall.settle();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !lists.iter().all(|list| list.heard().contains(">file</a>")) {
        assert!(Instant::now() < deadline, "no list");
        _ = wakes.recv_timeout(Duration::from_secs(60));
        gone.end.borrow_mut().says_no_more = true;
        hall.settle();
    }
    let file = hall.comes(ASK, MUCH);
    while !file.heard().ends_with("hello") {
        assert!(Instant::now() < deadline, "no file");
        hall.settle();
    }
}

/// A disk that does not answer costs only the clients that wait for it. Here a reader thread gets stuck in a
/// job.
#[test]
fn a_disk_that_does_not_answer_costs_its_clients_the_connection_and_no_place() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (woken, wakes) = mpsc::channel();
    let stands = Arc::new(AtomicBool::new(false));
    let shall_stand = Arc::clone(&stands);
    let wake = move || {
        let stands = stands.load(Ordering::Relaxed);
        woken.send(stands).unwrap();
        if stands {
            _ = held.lock().unwrap().recv();
        }
    };
    let rules = Rules { readers: 1, clients: 4, ..RULES };
    let mut hall = Hall::woken(&scratch, rules, Arc::new(wake));
    let list = "GET / HTTP/1.1\nHost: x\n\n";
    let first = hall.comes(list, MUCH);
    hall.settle();
    while !first.heard().contains(">file</a>") {
        wakes.recv_timeout(Duration::from_secs(60)).unwrap();
        hall.settle();
    }
    shall_stand.store(true, Ordering::Relaxed);
    let _last = hall.comes(list, MUCH);
    hall.settle();
    while !wakes.recv_timeout(Duration::from_secs(60)).unwrap() {
        hall.settle();
    }
    hall.settle();
    for round in 0..4 {
        let stuck = [(); 3].map(|()| hall.comes(list, MUCH));
        hall.settle();
        // From the second round on there are many jobs whose clients have gone.
        assert!(!stuck[0].is_gone() || round > 0);
        hall.later(RULES.disk);
        assert!(stuck.iter().all(|guest| guest.is_gone() && guest.end.borrow().is_reset));
        assert!(!hall.server.is_full());
    }
    drop(release);
}

/// Without readers no other thread wakes the server, so the next turn must be due at once.
#[test]
fn what_was_read_without_readers_makes_a_turn_due() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, RULES);
    let list = hall.comes("GET / HTTP/1.1\nHost: x\n\n", MUCH);
    let now = hall.now;
    hall.server.turn(hall.date, &mut || now);
    assert!(list.heard().is_empty() && hall.server.poll_at(now) == Some(now));
    hall.server.turn(hall.date, &mut || now);
    assert!(list.heard().contains(">file</a>"));
}
