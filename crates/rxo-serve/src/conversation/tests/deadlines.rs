//! Slow clients, and the end of connections, on virtual time.

use std::time::UNIX_EPOCH;

use super::*;

/// A conversation with limits of a few seconds, and the time at which it began.
struct Timed {
    conversation: Conversation,
    begin: Instant,
}

impl Timed {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let limits = Limits {
            idle: 15 * second,
            head: 10 * second,
            piece: 30 * second,
            least_rate: PIECE_BYTES as u64,
            linger: second,
            ..Limits::default()
        };
        Self { conversation: Conversation::new(limits), begin: Instant::now() }
    }

    /// Returns the step after `seconds`.
    fn at(&mut self, seconds: u64) -> Step<'_> {
        let instant = self.begin + Duration::from_secs(seconds);
        self.conversation.next(Now { instant, date: SystemTime::now(), may_stay: true })
    }

    fn says(&mut self, at: u64, text: &[u8]) {
        assert!(matches!(self.at(at), Step::Read { .. }), "it does not listen");
        self.conversation.received(text);
        _ = self.at(at);
    }

    /// Requests a file of a gigabyte.
    fn asks_for_much(&mut self) {
        self.says(0, b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(matches!(self.at(0), Step::Find(_)));
        let facts = crate::Facts { bytes: 1 << 30, changed: UNIX_EPOCH };
        self.conversation.found(Ok(Found::File(facts)));
        assert!(matches!(self.at(0), Step::Write { part: Some(Part { from: 0, .. }), .. }));
    }

    /// Accepts a whole piece of the answer.
    fn takes_a_piece(&mut self, at: u64) {
        let Step::Write { bytes, part: Some(part), .. } = self.at(at) else {
            panic!("nothing is offered")
        };
        let bytes = bytes.len() + part.bytes;
        self.conversation.on_written(bytes);
        assert!(matches!(self.at(at), Step::Write { bytes: [], part: Some(_), .. }));
    }
}

#[test]
fn a_silent_client_is_left_and_a_slow_one_is_told() {
    let mut silent = Timed::new();
    assert!(matches!(silent.at(0), Step::Read { .. }));
    assert!(matches!(silent.at(14), Step::Read { .. }));
    assert!(matches!(silent.at(15), Step::Finish));
    assert!(matches!(silent.at(15), Step::Close));
    let mut slow = Timed::new();
    slow.says(0, b"\r\n");
    slow.says(12, b"GET / HT");
    assert!(matches!(slow.at(21), Step::Read { .. }));
    assert!(matches!(slow.at(22), Step::Write { bytes, .. } if bytes.starts_with(b"HTTP/1.1 408")));
}

/// Bytes that cannot begin a request are answered at once: a TLS client hello, and other bytes that do not
/// begin with a method.
#[test]
fn what_cannot_become_a_request_is_answered_at_once() {
    for hello in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\r\n\x16", b"\x00", b" GET", b"\xff\xfe"] {
        let mut client = Timed::new();
        client.says(0, hello);
        let Step::Write { bytes, .. } = client.at(0) else { panic!("{hello:?} is not answered") };
        let answer = String::from_utf8_lossy(bytes);
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("TLS is not"), "{answer}");
    }
}

#[test]
fn empty_lines_give_no_further_time() {
    let mut client = Timed::new();
    (0..15).for_each(|second| client.says(second, b"\r\n"));
    assert!(matches!(client.at(15), Step::Finish));
    assert!(matches!(client.at(15), Step::Close));
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let mut client = Timed::new();
    client.asks_for_much();
    client.takes_a_piece(0);
    assert!(matches!(client.at(29), Step::Write { .. }));
    let Step::Answered(exchange) = client.at(31) else { panic!("it is kept") };
    assert!(!exchange.is_complete && exchange.bytes > 0 && exchange.took.as_secs() == 31);
    assert!(matches!(client.at(31), Step::Close));
}

/// A client that accepts too little is dropped. The limits are thirty seconds for a piece, then a piece per
/// second; here the client accepts a piece every ten seconds.
#[test]
fn a_client_that_takes_too_little_is_left() {
    let mut client = Timed::new();
    client.asks_for_much();
    (0..4).for_each(|piece| client.takes_a_piece(10 * piece));
    let Step::Answered(exchange) = client.at(40) else { panic!("it is kept") };
    assert!(!exchange.is_complete);
}

#[test]
fn after_the_last_answer_the_client_may_still_speak_for_a_while() {
    let mut client = Timed::new();
    client.says(0, b"nonsense\r\n\r\n");
    let Step::Write { bytes, .. } = client.at(0) else { panic!("no answer") };
    let bytes = bytes.len();
    client.conversation.on_written(bytes);
    assert!(matches!(client.at(0), Step::Answered(Exchange { status: 400, .. })));
    assert!(matches!(client.at(0), Step::Finish));
    client.says(0, b"GET / HTTP/1.1\r\n\r\n");
    assert!(matches!(client.at(0), Step::Read { .. }));
    assert!(matches!(client.at(1), Step::Close));
}

#[test]
fn where_there_is_no_room_the_answer_is_the_last() {
    let mut full = Conversation::new(Limits::default());
    let now = Now { may_stay: false, ..now() };
    let text = b"GET /% HTTP/1.1\r\nHost: x\r\n\r\n";
    assert!(matches!(full.next(now), Step::Read { .. }), "it does not listen");
    full.received(text);
    let Step::Write { bytes, .. } = full.next(now) else { panic!("no answer") };
    assert!(String::from_utf8_lossy(bytes).contains("\r\nConnection: close\r\n"));

    let mut turned_away = Conversation::refused("too many", &Limits::default(), now);
    let Step::Write { bytes, .. } = turned_away.next(now) else { panic!("no answer") };
    assert!(bytes.starts_with(b"HTTP/1.1 503 ") && bytes.ends_with(b": too many\n"));
}

#[test]
fn a_file_that_cannot_be_read_breaks_the_connection() {
    let mut client = Timed::new();
    client.asks_for_much();
    client.conversation.broken();
    let Step::Answered(exchange) = client.at(0) else { panic!("it goes on") };
    assert!(!exchange.is_complete && exchange.bytes == 0);
    assert!(matches!(client.at(0), Step::Close));
}
