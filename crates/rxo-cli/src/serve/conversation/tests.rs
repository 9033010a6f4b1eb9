//! Conversations over memory and over real sockets; the stack comes in the live tests.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::super::client::Client;
use super::super::pipe::Pipe;
use super::super::root::Root;
use super::*;

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

/// Runs a conversation and gives what was logged.
fn conversed(client: &mut impl Client, www: &Path, limits: &Limits) -> Vec<What> {
    let site = Site::new(Root::open(www).unwrap());
    let logged = RefCell::new(Vec::new());
    let log = |what, _| logged.borrow_mut().push(what);
    converse(client, &Host { site: &site, limits, may_keep: &|| true, log: &log });
    logged.into_inner()
}

/// What a client hears that says `text`, with LF for CR LF, so many bytes at a time.
fn heard_in_pieces(www: &Path, text: &str, at_once: usize) -> String {
    let mut client = Pipe::sending(text.replace('\n', "\r\n").as_bytes(), at_once);
    conversed(&mut client, www, &Limits::default());
    String::from_utf8_lossy(&client.heard).replace("\r\n", "\n")
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
fn what_is_no_request_ends_the_conversation() {
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
        conversed(&mut Pipe::sending(&bytes, at_once), &scratch.www(), &Limits::default());
    }

    #[test]
    fn requests_made_of_odd_parts_are_answered_and_nothing_gets_out(
        requests in prop::collection::vec(odd_request(), 1..8),
        at_once in 1..500_usize,
    ) {
        let scratch = Scratch::new();
        let text = requests.concat();
        let mut client = Pipe::sending(text.as_bytes(), at_once);
        let logged = conversed(&mut client, &scratch.www(), &Limits::default());
        prop_assert!(!logged.is_empty());
        let told = client.heard.windows(SECRET.len()).any(|window| window == SECRET);
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

impl Client for TcpStream {
    fn read_within(&mut self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }

    fn write_within(&mut self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

/// A client that is connected to a conversation with these limits.
fn connected(scratch: &Scratch, limits: Limits) -> (TcpStream, thread::JoinHandle<Vec<What>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let www = scratch.www();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        conversed(&mut stream, &www, &limits)
    });
    (client, server)
}

#[test]
fn a_large_file_comes_whole_over_a_socket() {
    let scratch = Scratch::new();
    scratch.file("large", &large());
    let (mut client, server) = connected(&scratch, Limits::default());
    client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&large()));
    drop(client);
    let logged = server.join().unwrap();
    assert_eq!((logged[0].bytes, logged[0].complete), (300_001, true));
}

#[test]
fn a_client_that_says_nothing_is_left_and_one_that_dawdles_is_told() {
    let scratch = Scratch::new();
    let short = Duration::from_millis(150);
    let limits = Limits { idle: short, head: short, linger: short, ..Limits::default() };
    let (mut silent, server) = connected(&scratch, limits);
    assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(server.join().unwrap().is_empty());
    let (mut slow, server) = connected(&scratch, limits);
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), 408);
    assert_eq!(server.join().unwrap()[0].status, 408);
}

/// Empty lines before a request are ignored, but they are no request.
#[test]
fn a_client_that_only_sends_empty_lines_is_left() {
    let scratch = Scratch::new();
    let short = Duration::from_millis(150);
    let limits = Limits { idle: short, head: short, linger: short, ..Limits::default() };
    let (mut client, server) = connected(&scratch, limits);
    for _ in 0..300 {
        if server.is_finished() || client.write_all(b"\r\n").is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(server.is_finished(), "it is still waited for after many times the limit");
    assert!(server.join().unwrap().is_empty());
}

#[test]
fn a_client_that_does_not_take_its_file_is_left() {
    let scratch = Scratch::new();
    let file = File::create(scratch.www().join("huge")).unwrap();
    file.set_len(64 << 20).unwrap();
    let limits = Limits { piece: Duration::from_millis(150), ..Limits::default() };
    let (mut client, server) = connected(&scratch, limits);
    client.write_all(b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let logged = server.join().unwrap();
    assert!(!logged[0].complete && logged[0].bytes < 64 << 20, "{logged:?}");
}

/// What stands in the chunks at the beginning of `text`, and what follows the last (RFC 9112, section 7.1).
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

/// RFC 9112, sections 6.1 and 6.3: a page of many names has no length; it comes in chunks, and for who
/// does not know them it ends with the connection.
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

/// A client that takes a little all the time, but too little.
#[test]
fn a_client_that_takes_its_file_too_slowly_is_left() {
    let scratch = Scratch::new();
    let file = File::create(scratch.www().join("huge")).unwrap();
    file.set_len(64 << 20).unwrap();
    // Sixty-four kilobytes in a few milliseconds, each time; a gigabyte a second is asked of it.
    let limits = Limits { piece: Duration::from_secs(1), least_rate: 1 << 30, ..Limits::default() };
    let (mut client, server) = connected(&scratch, limits);
    client.write_all(b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut buffer = vec![0; 64 << 10];
    while !server.is_finished() && client.read(&mut buffer).is_ok_and(|read| read > 0) {
        thread::sleep(Duration::from_millis(10));
    }
    let logged = server.join().unwrap();
    assert!(!logged[0].complete && logged[0].bytes < 64 << 20, "{logged:?}");
}
