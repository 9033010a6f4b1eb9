//! Readers of a page: over TCP and over a unix socket, slow readers, many readers, and readers with invalid
//! requests.
#![allow(clippy::unwrap_used, reason = "functions of tests, which the lint does not see")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rxo_control::{Listener, MOST_READERS, MOST_REQUEST_BYTES, Page, Server};

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: rxo\r\n\r\n";
const PATIENT: Duration = Duration::from_secs(60);

/// Starts a server with a page of `bytes` bytes, and a counter of the times that the page was created.
fn served(bytes: usize) -> (SocketAddr, Server, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (address, made) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counting = Arc::clone(&made);
    let text = move || {
        counting.fetch_add(1, Ordering::Relaxed);
        Ok("x".repeat(bytes))
    };
    let page = Page { path: "/metrics", content_type: "text/plain", text };
    (address, Server::of_page(Listener::Tcp(listener), page).unwrap(), made)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENT)).unwrap();
    stream
}

/// Returns everything that the server answers to `request` until it closes.
fn said(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

fn is_page(said: &str, bytes: usize) -> bool {
    let (head, text) = said.split_once("\r\n\r\n").unwrap();
    head.starts_with("HTTP/1.1 200 OK\r\n")
        && head.contains(&format!("Content-Length: {bytes}\r\n"))
        && text.len() == bytes
}

#[test]
fn a_page_comes_by_tcp_and_by_a_unix_socket() {
    let (address, _server, made) = served(1_000);
    assert!(is_page(&said(connect(address), GET), 1_000));
    assert!(said(connect(address), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert_eq!(made.load(Ordering::Relaxed), 1, "only who asks for it gets it made");

    let path = std::env::temp_dir().join(format!("rxo-page-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let page =
        Page { path: "/metrics", content_type: "text/plain", text: || Ok("y 1\n".to_owned()) };
    let server = Server::of_page(Listener::Unix(listener), page).unwrap();
    assert!(is_page(&said(UnixStream::connect(&path).unwrap(), GET), 4));
    drop(server);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn readers_that_take_nothing_and_send_nothing_delay_nobody() {
    let (address, _server, _) = served(8 << 20);
    let silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(GET.as_bytes()).unwrap();
    let mut half = connect(address);
    half.write_all(&GET.as_bytes()[..GET.len() - 2]).unwrap();
    for _ in 0..3 {
        assert!(is_page(&said(connect(address), GET), 8 << 20));
    }
    assert!(is_page(&said(half, "\r\n"), 8 << 20), "whoever goes on is answered");
    // The clients are dropped after their time limit, not before.
    let closed = said(silent, "");
    assert_eq!(closed, "");
    drop(slow);
}

#[test]
fn readers_beyond_the_limit_are_told_so() {
    let (address, _server, _) = served(10);
    let waiting: Vec<_> = (0..MOST_READERS).map(|_| connect(address)).collect();
    let mut told = String::new();
    connect(address).read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("8 clients are there"), "{told}");
    drop(waiting);
    let begun = std::time::Instant::now();
    loop {
        // The server notices in its next round that the clients have gone.
        let mut stream = connect(address);
        _ = stream.write_all(GET.as_bytes());
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(begun.elapsed() < PATIENT, "{answer}");
    }
}

#[test]
fn a_request_without_end_is_refused() {
    let (address, _server, _) = served(10);
    let said = said(connect(address), &"x".repeat(MOST_REQUEST_BYTES));
    assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
}

#[test]
fn the_end_waits_for_no_reader() {
    let (address, server, _) = served(8 << 20);
    let mut slow = connect(address);
    slow.write_all(GET.as_bytes()).unwrap();
    let _silent = connect(address);
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}
