//! Many clients in memory, with a real directory and time that only the test moves.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::PIECE_BYTES;

/// A directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(files: &[(&str, &[u8])]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rxo-server-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let scratch = Self(path);
        files.iter().for_each(|(name, bytes)| scratch.file(name, bytes));
        scratch
    }

    /// A file that was last changed long ago.
    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// The client's end of a connection.
#[derive(Debug, Default)]
struct End {
    says: Vec<u8>,
    says_no_more: bool,
    heard: Vec<u8>,
    /// How much the connection takes before the client reads.
    room: usize,
    is_finished: bool,
    is_reset: bool,
    is_gone: bool,
}

#[derive(Debug)]
struct Wire(Rc<RefCell<End>>);

impl Client for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut end = self.0.borrow_mut();
        let bytes = end.says.len().min(into.len());
        if bytes == 0 && !end.says_no_more {
            return Err(ErrorKind::WouldBlock.into());
        }
        into[..bytes].copy_from_slice(&end.says[..bytes]);
        end.says.drain(..bytes);
        Ok(bytes)
    }

    fn write(&mut self, bytes: &[u8], text: Option<&Text>) -> io::Result<usize> {
        let mut end = self.0.borrow_mut();
        let mut piece = bytes.to_vec();
        piece.extend_from_slice(text.map_or(&[], AsRef::as_ref));
        assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES + 1_024, "{}", piece.len());
        piece.truncate(end.room);
        if piece.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        end.room -= piece.len();
        end.heard.extend_from_slice(&piece);
        Ok(piece.len())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.borrow_mut().is_finished = true;
        Ok(())
    }

    fn reset(&mut self) {
        self.0.borrow_mut().is_reset = true;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.0.borrow_mut().is_gone = true;
    }
}

const RULES: Rules = Rules {
    limits: Limits {
        head_bytes: 1_024,
        head: Duration::from_secs(10),
        idle: Duration::from_secs(15),
        piece: Duration::from_secs(30),
        least_rate: 4_000,
        linger: Duration::from_secs(1),
    },
    clients: 64,
    per_peer: 64,
    cache_bytes: 256 << 10,
    readers: 0,
    disk: Duration::from_secs(30),
};

/// A server and its clock.
struct Hall {
    server: Server<Wire>,
    now: Instant,
    /// Far ahead of all changes of files, so that nothing is waited for.
    date: SystemTime,
    logged: Vec<(SocketAddr, Exchange)>,
}

struct Guest {
    token: u64,
    end: Rc<RefCell<End>>,
}

impl Hall {
    fn new(scratch: &Scratch, rules: Rules) -> Self {
        Self::woken(scratch, rules, Arc::new(|| ()))
    }

    fn woken(scratch: &Scratch, rules: Rules, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let root = Arc::new(Root::open(&scratch.0).unwrap());
        let server = Server::new(root, rules, wake);
        let date = SystemTime::now() + Duration::from_secs(3_600);
        Self { server, now: Instant::now(), date, logged: Vec::new() }
    }

    fn comes_from(&mut self, peer: &str, says: &str, room: usize) -> Guest {
        let end = End { says: says.replace('\n', "\r\n").into(), room, ..End::default() };
        let end = Rc::new(RefCell::new(end));
        let wire = Wire(Rc::clone(&end));
        let mut seated = 0;
        self.server.admit(peer.parse().unwrap(), (self.now, self.date), |token| {
            seated = token;
            wire
        });
        Guest { token: seated, end }
    }

    fn comes(&mut self, says: &str, room: usize) -> Guest {
        self.comes_from("10.0.0.9:1000", says, room)
    }

    /// Turns at this time until nothing is due.
    fn settle(&mut self) {
        loop {
            let now = self.now;
            self.server.turn(self.date, &mut || now);
            self.logged.extend(self.server.exchanges());
            if self.server.poll_at(now).is_none_or(|at| at > now) {
                return;
            }
        }
    }

    fn later(&mut self, time: Duration) {
        self.now += time;
        self.date += time;
        self.settle();
    }

    /// The client reads `room` bytes.
    fn takes(&mut self, guest: &Guest, room: usize) {
        guest.end.borrow_mut().room += room;
        self.server.ready(guest.token);
        self.settle();
    }

    fn says(&mut self, guest: &Guest, text: &str) {
        guest.end.borrow_mut().says.extend_from_slice(text.replace('\n', "\r\n").as_bytes());
        self.server.ready(guest.token);
        self.settle();
    }
}

impl Guest {
    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.end.borrow().heard).into_owned()
    }

    fn content(&self) -> Vec<u8> {
        let heard = self.end.borrow().heard.clone();
        let head = heard.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        heard[head.expect("no head")..].to_vec()
    }

    fn is_gone(&self) -> bool {
        self.end.borrow().is_gone
    }
}

/// Not a whole number of pieces, and no two pieces alike.
fn large(seed: u32) -> Vec<u8> {
    (0..300_001_u32).map(|number| (number.wrapping_mul(seed) >> 7) as u8).collect()
}

const ASK: &str = "GET /file HTTP/1.1\nHost: x\n\n";
const ASK_LAST: &str = "GET /file HTTP/1.1\nHost: x\nConnection: close\n\n";
const MUCH: usize = 1 << 30;

#[test]
fn two_requests_over_one_connection_and_a_proper_end() {
    let scratch = Scratch::new(&[("file", b"hello")]);
    let mut hall = Hall::new(&scratch, RULES);
    let guest = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(guest.heard().ends_with("\r\n\r\nhello"));
    hall.later(Duration::from_secs(14));
    hall.says(&guest, ASK_LAST);
    assert_eq!(guest.heard().matches("hello").count(), 2);
    assert!(guest.end.borrow().is_finished && !guest.is_gone(), "it may still speak");
    hall.later(Duration::from_secs(1));
    assert!(guest.is_gone() && hall.server.is_empty() && !guest.end.borrow().is_reset);
    assert_eq!(hall.logged.len(), 2);
}

#[test]
fn a_large_file_comes_whole_however_slowly_it_is_taken() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    for room in [1_000, 65_536, 70_001] {
        let mut hall = Hall::new(&scratch, RULES);
        let guest = hall.comes(ASK, room);
        hall.settle();
        while hall.logged.is_empty() {
            hall.takes(&guest, room);
        }
        assert!(guest.content() == large(3), "{room}");
        assert_eq!((hall.logged[0].1.bytes, hall.logged[0].1.is_complete), (300_001, true));
    }
}

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
    // What is unread when a connection is closed resets it, and the answer is lost.
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
    // One who does not take even that is not waited for.
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
    File::create(scratch.0.join("file")).unwrap().set_len(64 << 20).unwrap();
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

/// What a client has then is a part of the first version, and it knows that there is more.
#[test]
fn a_file_that_changes_while_it_is_sent_resets_its_answer() {
    let rewritten = |path: &std::path::Path| fs::write(path, large(5)).unwrap();
    let shrunk = |path: &std::path::Path| {
        File::options().write(true).open(path).unwrap().set_len(100_000).unwrap();
    };
    let grown = |path: &std::path::Path| {
        File::options().append(true).open(path).unwrap().write_all(b"more").unwrap();
    };
    let changes: [&dyn Fn(&std::path::Path); 3] = [&rewritten, &shrunk, &grown];
    for change in changes {
        let scratch = Scratch::new(&[("file", &large(3))]);
        let mut hall = Hall::new(&scratch, RULES);
        let guest = hall.comes(ASK, 80_000);
        hall.settle();
        change(&scratch.0.join("file"));
        hall.takes(&guest, MUCH);
        assert!(guest.is_gone() && guest.end.borrow().is_reset);
        let content = guest.content();
        assert!(content == large(3)[..content.len()] && content.len() < 300_001, "mixed");
        assert!(!hall.logged[0].1.is_complete);
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_sent_comes_whole_and_the_next_is_the_new_one() {
    let scratch = Scratch::new(&[("file", &large(3)), ("other", &large(5))]);
    let mut hall = Hall::new(&scratch, RULES);
    let first = hall.comes(ASK, 80_000);
    hall.settle();
    fs::rename(scratch.0.join("other"), scratch.0.join("file")).unwrap();
    let second = hall.comes(ASK, MUCH);
    hall.settle();
    hall.takes(&first, MUCH);
    assert!(first.content() == large(3) && second.content() == large(5));
}

/// Its file system's clock may still give the next change the same time: nothing of it is read before.
#[test]
fn a_file_that_has_just_changed_is_waited_for() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    hall.date = changed(&scratch) + Duration::from_millis(5);
    let guest = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(guest.heard().is_empty() && hall.server.poll_at(hall.now) > Some(hall.now));
    // A change that has the same time, or a later one: either is seen.
    fs::write(scratch.0.join("file"), large(5)).unwrap();
    // A clock of whole seconds takes longer.
    hall.later(Duration::from_secs(2));
    assert!(guest.is_gone() && guest.end.borrow().is_reset);
    hall.date = changed(&scratch) + Duration::from_secs(1_000);
    let again = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(again.content() == large(5));
}

#[test]
fn a_file_of_the_same_size_and_time_is_another_one_if_it_was_changed() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    let first = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(first.content() == large(3));
    let before = changed(&scratch);
    let deadline = Instant::now() + Duration::from_secs(60);
    while changed(&scratch) == before {
        assert!(Instant::now() < deadline, "the clock stands");
        // It sets the time of modification that the file had.
        scratch.file("file", &large(5));
    }
    let second = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(second.content() == large(5), "the old file out of the cache");
}

/// A file system whose clock is hours ahead: nothing of it is kept, so no later answer gets what is old.
#[test]
fn a_file_from_the_future_is_read_again_each_time() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    hall.date = changed(&scratch) - Duration::from_secs(3_600);
    let guest = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(guest.content() == large(3) && hall.server.shared.pages.is_empty());
    hall.date += Duration::from_secs(7_200);
    let later = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(later.content() == large(3) && !hall.server.shared.pages.is_empty());
}

/// When anything of the file changed.
fn changed(scratch: &Scratch) -> SystemTime {
    let file = fs::metadata(scratch.0.join("file")).unwrap();
    UNIX_EPOCH + Duration::new(file.ctime() as u64, file.ctime_nsec() as u32)
}

/// Whoever does not read costs no page: the cache is as large as it may be, whatever they ask for.
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
    assert!(hall.server.seats.values().all(Seat::holds_no_page));
    hall.later(Duration::from_secs(31));
    assert!(guests.iter().all(Guest::is_gone) && hall.server.is_empty());
    assert!(hall.server.deadlines.is_empty() && hall.server.queue.is_empty());
}

/// A directory is read by a thread; meanwhile the others go on.
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

/// The reader stands still from a job on.
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
        // From the second round on there are jobs enough whose clients have gone.
        assert!(!stuck[0].is_gone() || round > 0);
        hall.later(RULES.disk);
        assert!(stuck.iter().all(|guest| guest.is_gone() && guest.end.borrow().is_reset));
        assert!(!hall.server.is_full());
    }
    drop(release);
}

/// Without readers nobody else wakes the server.
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// However clients, time and rooms are mixed, each hears what it would hear alone, and all are left in the
    /// end. The oracle of a deadline is that time itself: nobody stays beyond the sum of all limits.
    #[test]
    fn clients_do_not_disturb_each_other(
        acts in prop::collection::vec((0..4_u8, 0..8_usize, 0..5_000_u64), 1..120),
    ) {
        let scratch = Scratch::new(&[("file", &large(3)), ("small", b"hello")]);
        let mut hall = Hall::new(&scratch, Rules { clients: 8, per_peer: 8, ..RULES });
        let mut guests: Vec<Guest> = Vec::new();
        for (act, which, much) in acts {
            let guest = guests.get(which);
            match (act, guest) {
                (0, _) if !hall.server.is_full() => {
                    let guest = hall.comes(ASK, much as usize);
                    guests.push(guest);
                }
                (1, Some(guest)) => hall.takes(guest, 100 * much as usize),
                (2, Some(guest)) => hall.says(guest, ASK),
                (3, _) => hall.later(Duration::from_millis(much)),
                _ => hall.settle(),
            }
        }
        let alone: Vec<u8> = large(3);
        hall.settle();
        for guest in guests.iter().filter(|guest| guest.heard().contains("\r\n\r\n")) {
            let content = guest.content();
            let first = &content[..content.len().min(alone.len())];
            prop_assert!(first == &alone[..first.len()]);
        }
        for _ in 0..10 {
            hall.later(Duration::from_secs(120));
        }
        prop_assert!(hall.server.is_empty() && hall.server.deadlines.is_empty());
        prop_assert!(guests.iter().all(Guest::is_gone));
    }
}
