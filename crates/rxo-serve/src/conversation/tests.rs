//! Conversations over memory, with a real directory and time that only the test moves.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;
use crate::files::{Opened, Root};
use crate::{LISTING_BYTES, PIECE_BYTES};

/// A directory with files, removed at the end. Beside it stands a secret.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rxo-serve-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let www = path.join("www");
        fs::create_dir_all(www.join("sub/deep")).unwrap();
        fs::write(path.join("secret"), SECRET).unwrap();
        let scratch = Self(path);
        scratch.file("hello.txt", b"hello, world");
        scratch.file("empty", b"");
        scratch.file("sub/page.html", b"<p>page");
        symlink("hello.txt", www.join("inside")).unwrap();
        symlink("../secret", www.join("outside")).unwrap();
        symlink("../..", www.join("sub/up")).unwrap();
        symlink(www.join("hello.txt"), www.join("absolute")).unwrap();
        symlink("loop", www.join("loop")).unwrap();
        scratch
    }

    fn www(&self) -> PathBuf {
        self.0.join("www")
    }

    /// A file that was last changed long ago.
    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.www().join(name);
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

const SECRET: &[u8] = b"the secret that is not served";

/// Not a whole number of pieces.
fn large() -> Vec<u8> {
    (0..300_001_u32).map(|number| (number % 251) as u8).collect()
}

/// What was heard and logged, and how often the directory was read.
#[derive(Debug, Default)]
struct Talk {
    heard: Vec<u8>,
    logged: Vec<Exchange>,
    listed: u32,
}

fn now() -> Now {
    Now { instant: Instant::now(), date: SystemTime::now(), may_stay: true }
}

/// A conversation with a client that says `text`, and reads and writes `at_once` bytes at a time.
fn conversed(mut text: &[u8], www: &Path, at_once: usize) -> Talk {
    let (root, mut talk) = (Root::open(www).unwrap(), Talk::default());
    let mut opened = Opened::new(&root);
    let mut conversation = Conversation::new(Limits::default());
    loop {
        match conversation.next(now()) {
            Step::Read { into, .. } => {
                let bytes = text.len().min(at_once).min(into.len());
                into[..bytes].copy_from_slice(&text[..bytes]);
                text = &text[bytes..];
                conversation.received(bytes);
            }
            Step::Find(lookup) => conversation.found(opened.find(&lookup)),
            Step::List => {
                talk.listed += 1;
                conversation.listed(opened.names());
            }
            Step::Load { from, into } => {
                opened.load(from, into).unwrap();
                conversation.loaded();
            }
            Step::Write { bytes, .. } => {
                assert!(bytes.len() <= PIECE_BYTES, "{}", bytes.len());
                let bytes = &bytes[..bytes.len().min(at_once)];
                talk.heard.extend_from_slice(bytes);
                let written = bytes.len();
                conversation.wrote(written);
            }
            Step::Answered(exchange) => {
                opened.close();
                talk.logged.push(exchange);
            }
            Step::Finish => {}
            Step::Close => return talk,
        }
    }
}

/// What a client hears that says `text`, with LF for CR LF, so many bytes at a time.
fn heard_in_pieces(www: &Path, text: &str, at_once: usize) -> String {
    let talk = conversed(text.replace('\n', "\r\n").as_bytes(), www, at_once);
    String::from_utf8_lossy(&talk.heard).replace("\r\n", "\n")
}

fn heard(www: &Path, text: &str) -> String {
    heard_in_pieces(www, text, 1 << 20)
}

/// The answer to one request with these fields.
fn get(www: &Path, target: &str, fields: &str) -> String {
    heard(www, &format!("GET {target} HTTP/1.1\nHost: x\n{fields}\n"))
}

fn status(answer: &str) -> u16 {
    answer[9..12].parse().unwrap()
}

fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let mut lines = answer.split("\n\n").next().unwrap().lines();
    let line = lines.find(|line| line.starts_with(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {answer}")).split_once(": ").unwrap().1
}

#[test]
fn a_file_is_given_with_what_is_known_of_it() {
    let scratch = Scratch::new();
    let answer = get(&scratch.www(), "/hello.txt?x=1", "");
    assert_eq!(status(&answer), 200);
    assert_eq!(field(&answer, "Content-Length"), "12");
    assert_eq!(field(&answer, "Content-Type"), "text/plain; charset=utf-8");
    assert_eq!(field(&answer, "Last-Modified"), "Sun, 09 Sep 2001 01:46:40 GMT");
    assert_eq!(field(&answer, "Accept-Ranges"), "bytes");
    assert!(answer.ends_with("\n\nhello, world") && !answer.contains("Connection"), "{answer}");
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let scratch = Scratch::new();
    let text = "GET /hello.txt HTTP/1.1\nHost: x\n\nHEAD /hello.txt HTTP/1.1\nHost: x\n\n\
                GET /nothing HTTP/1.1\nHost: x\n\nGET /empty HTTP/1.1\nHost: x\nConnection: close\n\n\
                GET /never HTTP/1.1\nHost: x\n\n";
    let whole = heard(&scratch.www(), text);
    let answers: Vec<u16> =
        whole.match_indices("HTTP/1.1 ").map(|(at, _)| status(&whole[at..])).collect();
    assert_eq!(answers, [200, 200, 404, 200]);
    assert_eq!(whole.matches("hello, world").count(), 1, "HEAD has no content: {whole}");
    assert!(whole.contains("Content-Length: 0\nConnection: close\n\n"), "{whole}");
    for at_once in [1, 7, 100] {
        let again = heard_in_pieces(&scratch.www(), text, at_once);
        assert_eq!(without_dates(&again), without_dates(&whole), "{at_once}");
    }
}

fn without_dates(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("Date: ")).collect()
}

#[test]
fn ranges_and_versions() {
    let scratch = Scratch::new();
    let www = &scratch.www();
    let tag = field(&get(www, "/hello.txt", ""), "ETag").to_owned();
    let part = get(www, "/hello.txt", &format!("Range: bytes=7-\nIf-Range: {tag}\n"));
    assert_eq!((status(&part), field(&part, "Content-Range")), (206, "bytes 7-11/12"));
    assert!(part.ends_with("\n\nworld"));
    let behind = get(www, "/hello.txt", "Range: bytes=12-\n");
    assert_eq!((status(&behind), field(&behind, "Content-Range")), (416, "bytes */12"));
    let several = get(www, "/hello.txt", "Range: bytes=0-0,2-3\n");
    assert!(status(&several) == 200 && several.ends_with("hello, world"));
    let other = get(www, "/hello.txt", "Range: bytes=7-\nIf-Range: \"x\"\n");
    assert!(status(&other) == 200 && other.ends_with("hello, world"));
    let known = get(www, "/hello.txt", &format!("If-None-Match: {tag}\n"));
    assert!(status(&known) == 304 && known.ends_with("\n\n"), "{known}");
    assert!(!known.contains("Content-Length"));
    let since = get(www, "/hello.txt", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\n");
    assert_eq!(status(&since), 304);
    assert_eq!(status(&get(www, "/hello.txt", "If-Match: \"x\"\n")), 412);
    assert_eq!(status(&get(www, "/empty", "Range: bytes=0-\n")), 416);
}

#[test]
fn directories_have_an_index_or_are_listed() {
    let scratch = Scratch::new();
    let www = &scratch.www();
    let listed = get(www, "/", "");
    assert!(status(&listed) == 200 && listed.contains("<a href=\"./sub/\">sub/</a>"), "{listed}");
    let moved = get(www, "//sub", "");
    assert_eq!((status(&moved), field(&moved, "Location")), (301, "/sub/"));
    scratch.file("sub/index.html", b"<p>index");
    let index = get(www, "/sub/", "");
    assert!(field(&index, "Content-Type").starts_with("text/html") && index.ends_with("<p>index"));
    assert_eq!(status(&get(www, "/hello.txt/", "")), 404);
}

#[test]
fn links_are_followed_inside_and_nowhere_else() {
    let scratch = Scratch::new();
    let www = &scratch.www();
    assert!(get(www, "/inside", "").ends_with("hello, world"));
    for (path, expected) in [
        ("/outside", 403),
        ("/absolute", 403),
        ("/sub/up/secret", 403),
        ("/sub/up/", 403),
        ("/loop", 404),
        ("/../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/..%2fsecret", 404),
        ("/sub/..%00/secret", 400),
    ] {
        let answer = get(www, path, "");
        assert_eq!(status(&answer), expected, "{path}");
        assert!(!answer.contains("the secret"), "{path}");
    }
}

#[test]
fn a_pipe_in_the_directory_stops_nobody() {
    let scratch = Scratch::new();
    let path = scratch.www().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(status(&get(&scratch.www(), "/pipe", "")), 403);
}

#[test]
fn a_head_that_is_no_request_ends_the_conversation() {
    let scratch = Scratch::new();
    let www = &scratch.www();
    let next = "GET /hello.txt HTTP/1.1\nHost: x\n\n";
    let rows = [
        ("nonsense\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc", 405),
        ("GET / HTTP/3.0\n\n", 505),
        (&*format!("GET /{} HTTP/1.1\n", "a".repeat(20_000)), 431),
    ];
    for (text, expected) in rows {
        let answer = heard(www, &format!("{text}{next}"));
        assert_eq!((status(&answer), field(&answer, "Connection")), (expected, "close"), "{text}");
        assert_eq!(answer.matches("Date: ").count(), 1, "{answer}");
    }
    assert_eq!(field(&get(www, "/", "Content-Length: 9\n"), "Connection"), "close");
    let old = heard(www, "GET /empty HTTP/1.0\nConnection: keep-alive\n\nGET /empty HTTP/1.0\n\n");
    assert_eq!(old.matches("Connection: keep-alive").count(), 1, "{old}");
    assert_eq!(old.matches("Connection: close").count(), 1, "{old}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at_once in 1..50_usize) {
        let scratch = Scratch::new();
        conversed(&bytes, &scratch.www(), at_once);
    }

    #[test]
    fn requests_made_of_odd_parts_are_answered_and_nothing_gets_out(
        requests in prop::collection::vec(odd_request(), 1..8),
        at_once in 1..500_usize,
    ) {
        let scratch = Scratch::new();
        let text = requests.concat();
        let talk = conversed(text.as_bytes(), &scratch.www(), at_once);
        prop_assert!(!talk.logged.is_empty());
        let told = talk.heard.windows(SECRET.len()).any(|window| window == SECRET);
        prop_assert!(!told, "{text}");
    }
}

/// Requests that are nearly right.
fn odd_request() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just("%2e%2E".to_owned()),
        Just(".".to_owned()),
        Just("sub".to_owned()),
        Just("up".to_owned()),
        Just("secret".to_owned()),
        Just("outside".to_owned()),
        Just("%2f".to_owned()),
        Just("%00".to_owned()),
        Just("hello.txt".to_owned()),
        "[ -~]{0,6}",
    ];
    let path = prop::collection::vec(part, 0..6).prop_map(|parts| format!("/{}", parts.join("/")));
    let field = prop_oneof![
        Just("Host: x\r\n".to_owned()),
        "Range: bytes=[0-9]{0,3}-[0-9]{0,3}\r\n",
        "If-None-Match: [ -~]{0,9}\r\n",
        "If-Range: [ -~]{0,9}\r\n",
        "[A-Za-z-]{1,9}: [ -~]{0,9}\r\n",
    ];
    let fields = prop::collection::vec(field, 0..4);
    let method = prop_oneof![4 => Just("GET"), 1 => Just("HEAD"), 1 => Just("PUT")];
    (method, path, fields).prop_map(|(method, path, fields)| {
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{}\r\n", fields.concat())
    })
}

#[test]
fn a_large_file_comes_whole() {
    let scratch = Scratch::new();
    scratch.file("large", &large());
    let text = b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for at_once in [1_000, 1 << 20] {
        let talk = conversed(text, &scratch.www(), at_once);
        assert!(talk.heard.ends_with(&large()));
        assert_eq!((talk.logged[0].bytes, talk.logged[0].is_complete), (300_001, true));
    }
}

/// The content of the chunks at the beginning of `text`, and what follows the last (RFC 9112, section
/// 7.1).
fn unchunked(mut text: &str) -> (String, &str) {
    let mut content = String::new();
    loop {
        let (size, rest) = text.split_once('\n').unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        content += &rest[..size];
        text = rest[size..].strip_prefix('\n').unwrap();
        if size == 0 {
            return (content, text);
        }
    }
}

/// RFC 9112, sections 6.1 and 6.3: a page of many names has no length; it comes in chunks, and for a
/// client that does not know chunks it ends with the connection.
#[test]
fn a_page_of_many_names_is_streamed() {
    let scratch = Scratch::new();
    let www = &scratch.www();
    let names: Vec<String> = (0..3_000).map(|index| format!("many-{index:04}")).collect();
    for name in &names {
        File::create(www.join("sub").join(name)).unwrap();
    }
    let is_whole = |page: &str| {
        let items = names.iter().filter(|name| page.contains(&format!("./{name}\"")));
        items.count() == names.len() && page.ends_with("</ul>\n")
    };
    let next = "GET /empty HTTP/1.1\nHost: x\n\n";
    for at_once in [7, 1 << 20] {
        let text = format!("GET /sub/ HTTP/1.1\nHost: x\n\n{next}");
        let told = heard_in_pieces(www, &text, at_once);
        assert_eq!((status(&told), field(&told, "Transfer-Encoding")), (200, "chunked"));
        let (fields, rest) = told.split_once("\n\n").unwrap();
        assert!(!fields.contains("Content-Length"), "{fields}");
        let (page, after) = unchunked(rest);
        assert!(is_whole(&page) && status(after) == 200, "{after}");
    }
    let head = heard(www, &format!("HEAD /sub/ HTTP/1.1\nHost: x\n\n{next}"));
    assert_eq!((head.matches("HTTP/1.1 200").count(), head.contains("<ul>")), (2, false));

    let old = heard(www, &format!("GET /sub/ HTTP/1.0\nConnection: keep-alive\n\n{next}"));
    assert_eq!(field(&old, "Connection"), "close");
    assert!(!old.contains("chunked") && is_whole(&old) && old.matches("Date: ").count() == 1);
}

/// However many pieces its page has, a directory is read once for a request.
#[test]
fn a_directory_is_read_once_for_a_request() {
    let scratch = Scratch::new();
    for index in 0..2_000 {
        File::create(scratch.www().join(format!("sub/{index:0100}"))).unwrap();
    }
    let talk = conversed(b"GET /sub/ HTTP/1.1\r\nHost: x\r\n\r\n", &scratch.www(), 1 << 20);
    let page = talk.logged[0].bytes as usize;
    assert!(page > 10 * LISTING_BYTES, "{page} bytes are many pieces");
    assert_eq!(talk.listed, 1);
}

/// A conversation whose time begins now, with limits of seconds.
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

    /// The step after so many seconds.
    fn at(&mut self, seconds: u64) -> Step<'_> {
        let instant = self.begin + Duration::from_secs(seconds);
        self.conversation.next(Now { instant, date: SystemTime::now(), may_stay: true })
    }

    fn says(&mut self, at: u64, text: &[u8]) {
        let Step::Read { into, .. } = self.at(at) else { panic!("it does not listen") };
        into[..text.len()].copy_from_slice(text);
        self.conversation.received(text.len());
        _ = self.at(at);
    }

    /// Asks for a file of a gigabyte and gets its first piece loaded.
    fn asks_for_much(&mut self) {
        self.says(0, b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(matches!(self.at(0), Step::Find(_)));
        let facts = crate::Facts { bytes: 1 << 30, inode: 1, changed: UNIX_EPOCH };
        self.conversation.found(Ok(Found::File(facts)));
        assert!(matches!(self.at(0), Step::Load { from: 0, .. }));
        self.conversation.loaded();
    }

    /// Takes a whole piece, and the next is loaded.
    fn takes_a_piece(&mut self, at: u64) {
        let Step::Write { bytes, .. } = self.at(at) else { panic!("nothing is offered") };
        let bytes = bytes.len();
        self.conversation.wrote(bytes);
        assert!(matches!(self.at(at), Step::Load { .. }));
        self.conversation.loaded();
    }
}

#[test]
fn a_silent_client_is_left_and_a_slow_one_is_told() {
    let mut silent = Timed::new();
    assert!(matches!(silent.at(0), Step::Read { .. }));
    assert!(matches!(silent.at(14), Step::Read { .. }));
    assert!(matches!(silent.at(15), Step::Close));
    let mut slow = Timed::new();
    slow.says(0, b"\r\n");
    slow.says(12, b"GET / HT");
    assert!(matches!(slow.at(21), Step::Read { .. }));
    assert!(matches!(slow.at(22), Step::Write { bytes, .. } if bytes.starts_with(b"HTTP/1.1 408")));
}

#[test]
fn empty_lines_give_no_further_time() {
    let mut client = Timed::new();
    (0..15).for_each(|second| client.says(second, b"\r\n"));
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

/// Thirty seconds, then a piece a second: a piece every ten seconds is too little.
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
    client.conversation.wrote(bytes);
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
    let text = b"GET /.. HTTP/1.1\r\nHost: x\r\n\r\n";
    let Step::Read { into, .. } = full.next(now) else { panic!("it does not listen") };
    into[..text.len()].copy_from_slice(text);
    full.received(text.len());
    let Step::Write { bytes, .. } = full.next(now) else { panic!("no answer") };
    assert!(String::from_utf8_lossy(bytes).contains("\r\nConnection: close\r\n"));

    let mut turned_away = Conversation::turned_away("too many", now);
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
