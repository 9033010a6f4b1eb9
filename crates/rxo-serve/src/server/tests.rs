//! Many clients in memory, with a real directory and a time that only the test advances.

mod changes;
mod disk;
mod drain;
mod places;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::PIECE_BYTES;
use crate::scratch::Scratch;

#[derive(Debug, Default)]
struct End {
    says: Vec<u8>,
    says_no_more: bool,
    heard: Vec<u8>,
    /// Number of bytes that the connection accepts before the client reads.
    room: usize,
    /// Number of bytes reported as not received.
    on_its_way: u64,
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

    fn in_flight_bytes(&mut self) -> u64 {
        self.0.borrow().on_its_way
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
    server: Server<'static>,
    now: Instant,
    /// The current date: long after all changes of files, so that every version is settled.
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
        let root = Arc::new(Root::open(scratch.path()).unwrap());
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

    /// Runs turns at this time until nothing is due.
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

    /// Lets the client read `room` bytes.
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

/// Returns a length that is not a multiple of the piece size, with no two equal pieces.
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

/// All requests arrive at once and all answers are accepted at once, so nothing is waited for between two
/// answers.
#[test]
fn files_that_are_asked_for_behind_each_other_are_not_mixed() {
    let files =
        [("long", &large(3)[..]), ("small", b"hello"), ("large", &large(5)), ("least", b"x")];
    let scratch = Scratch::new(&files);
    let mut hall = Hall::new(&scratch, RULES);
    let asked: String =
        files.map(|(name, _)| format!("GET /{name} HTTP/1.1\nHost: x\n\n")).concat();
    let guest = hall.comes(&asked, MUCH);
    hall.settle();
    let heard = guest.end.borrow().heard.clone();
    let mut rest = &heard[..];
    for (name, content) in files {
        let head = rest.windows(4).position(|four| four == b"\r\n\r\n").expect(name) + 4;
        let (body, behind) = rest[head..].split_at(content.len());
        assert!(body == content, "{name}: {:?}", String::from_utf8_lossy(&body[..1]));
        rest = behind;
    }
    assert!(rest.is_empty() && hall.logged.len() == 4);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// However clients, times and buffer sizes are mixed, each client receives what it would receive alone,
    /// and all connections end. The oracle of deadlines is time: no client stays longer than the sum of all
    /// limits.
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
