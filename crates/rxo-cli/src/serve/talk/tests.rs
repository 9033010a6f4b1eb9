//! Conversations over real sockets, in real time; the stack comes in the live tests.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rxo_serve::files::Root;
use rxo_serve::{Conversation, Limits, talk};

use super::*;

/// An empty directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rxo-talk-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Not a whole number of pieces.
fn large() -> Vec<u8> {
    (0..300_001_u32).map(|number| (number % 251) as u8).collect()
}

/// Holds a conversation and returns what was logged.
fn held(client: &mut impl Client, www: &Path, limits: Limits) -> Vec<Exchange> {
    let root = Root::open(www).unwrap();
    let logged = RefCell::new(Vec::new());
    let log = |exchange| logged.borrow_mut().push(exchange);
    let mut host = Host { client, may_stay: &|| true, log: &log };
    talk(&mut host, Conversation::new(limits), &root);
    logged.into_inner()
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
fn connected(scratch: &Scratch, limits: Limits) -> (TcpStream, thread::JoinHandle<Vec<Exchange>>) {
    connected_with(scratch, limits, "")
}

/// A client that has sent `first` when the conversation begins, so that no limit can pass before that.
fn connected_with(
    scratch: &Scratch,
    limits: Limits,
    first: &str,
) -> (TcpStream, thread::JoinHandle<Vec<Exchange>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(first.as_bytes()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let www = scratch.0.clone();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        held(&mut stream, &www, limits)
    });
    (client, server)
}

#[test]
fn a_large_file_comes_whole_over_a_socket() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("large"), large()).unwrap();
    let (mut client, server) = connected(&scratch, Limits::default());
    client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&large()));
    drop(client);
    let logged = server.join().unwrap();
    assert_eq!((logged[0].bytes, logged[0].is_complete), (300_001, true));
}

#[test]
fn a_client_that_says_nothing_is_left_and_one_that_dawdles_is_told() {
    let scratch = Scratch::new();
    let short = Duration::from_millis(150);
    let limits = Limits { idle: short, head: short, linger: short, ..Limits::default() };
    let (mut silent, server) = connected(&scratch, limits);
    assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(server.join().unwrap().is_empty());
    let (mut slow, server) = connected_with(&scratch, limits, "GET / HTTP/1.1\r\n");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(server.join().unwrap()[0].status, 408);
}

/// Empty lines before a request are ignored, but they are no request.
#[test]
fn a_client_that_only_sends_empty_lines_is_left() {
    let scratch = Scratch::new();
    let short = Duration::from_millis(150);
    let limits = Limits { idle: short, head: short, linger: short, ..Limits::default() };
    let (mut client, server) = connected(&scratch, limits);
    let begin = Instant::now();
    while !server.is_finished() {
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(60), "still waited for after many times the limit");
        // It fails once the server has closed, which is before its thread ends.
        _ = client.write_all(b"\r\n");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(server.join().unwrap().is_empty());
}

#[test]
fn a_client_that_does_not_take_its_file_is_left() {
    let scratch = Scratch::new();
    let file = File::create(scratch.0.join("huge")).unwrap();
    file.set_len(64 << 20).unwrap();
    let limits = Limits { piece: Duration::from_millis(150), ..Limits::default() };
    let (_client, server) =
        connected_with(&scratch, limits, "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
    let logged = server.join().unwrap();
    assert!(!logged[0].is_complete && logged[0].bytes < 64 << 20, "{logged:?}");
}

/// A client that takes a little all the time, but too little.
#[test]
fn a_client_that_takes_its_file_too_slowly_is_left() {
    let scratch = Scratch::new();
    let file = File::create(scratch.0.join("huge")).unwrap();
    file.set_len(64 << 20).unwrap();
    // Sixty-four kilobytes in a few milliseconds, each time; a gigabyte a second is asked of it.
    let limits = Limits { piece: Duration::from_secs(1), least_rate: 1 << 30, ..Limits::default() };
    let (mut client, server) =
        connected_with(&scratch, limits, "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut buffer = vec![0; 64 << 10];
    while !server.is_finished() && client.read(&mut buffer).is_ok_and(|read| read > 0) {
        thread::sleep(Duration::from_millis(10));
    }
    let logged = server.join().unwrap();
    assert!(!logged[0].is_complete && logged[0].bytes < 64 << 20, "{logged:?}");
}
