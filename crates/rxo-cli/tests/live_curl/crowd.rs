//! Many clients at once: Linux sockets, one thread each.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::server::{Server, bytes};

pub(crate) const TESTS: &[Test] = &[
    ("four_hundred_clients_at_once", crowd),
    ("two_workers_serve_four_hundred_clients", two_workers),
    ("a_reader_of_the_log_that_pauses_delays_nobody", paused_log),
    ("an_address_gets_its_share_of_the_places", share),
    ("those_who_do_not_read_a_large_page_take_little", silent_readers),
    ("those_who_do_not_read_small_parts_take_little", small_parts),
    ("slow_clients_get_everything_however_many_they_are", slow),
    ("visits_that_the_server_ends_leave_its_sockets_free", visits),
];

const CLIENTS: usize = 400;
const TIMEOUT: Duration = Duration::from_secs(60);

fn crowd() {
    served("", "crowd");
}

fn two_workers() {
    served("--workers 2 --cpus 0-1", "workers");
}

fn served(more: &str, name: &str) {
    let content = bytes(100_001);
    let flags = format!("--per-peer 512 --idle 300s {more}");
    let mut server = Server::start_with(&flags, name, &[("file", &content)]);
    // All are connected before any sends a request.
    let all_there = Barrier::new(CLIENTS);
    server
        .lab
        .peer()
        .run(|| {
            thread::scope(|scope| {
                let client = || ask(&all_there, &content);
                let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        })
        .unwrap();
    for _ in 0..2 * CLIENTS {
        let access = server.next_access();
        assert_eq!(access["status"], 200, "{access}");
        assert_eq!(access["complete"], true, "{access}");
    }
    assert_eq!(server.end(), Some(0));
}

/// Sends two requests on one connection.
fn ask(all_there: &Barrier, content: &[u8]) {
    let address = "10.77.0.2:80".parse().unwrap();
    let client = TcpStream::connect_timeout(&address, TIMEOUT);
    all_there.wait();
    let mut client = client.unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    for _ in 0..2 {
        ask_once(&mut client, &mut reader, content);
    }
}

fn ask_once(client: &mut TcpStream, reader: &mut impl BufRead, content: &[u8]) {
    client.write_all(b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the server closed after {lines:?}");
        if line == "\r\n" {
            break;
        }
        lines.push(line);
    }
    assert_eq!(lines[0], "HTTP/1.1 200 OK\r\n");
    let mut got = vec![0; content.len()];
    reader.read_exact(&mut got).unwrap();
    assert!(got == content);
}

/// The access log is not read until all requests are answered. Then each request has a line, or is counted in
/// the line that replaces those that did not fit.
fn paused_log() {
    const REQUESTS: u64 = 4_000;
    let content = b"hello";
    let mut server = Server::start("paused-log", &[("file", content)]);
    let mut client = client(&server, "");
    let mut reader = BufReader::new(client.try_clone().unwrap());
    for _ in 0..REQUESTS {
        ask_once(&mut client, &mut reader, content);
    }
    let (mut printed, mut skipped) = (0, 0);
    while printed + skipped < REQUESTS {
        let line = server.next_access();
        match line["skipped"].as_u64() {
            Some(count) => skipped += count,
            None => {
                assert_eq!(line["status"], 200, "{line}");
                printed += 1;
            }
        }
    }
    assert_eq!(printed + skipped, REQUESTS);
    assert!(skipped > 0);
}

/// Returns a client in the peer's namespace that has sent `request`.
fn client(server: &Server, request: &str) -> TcpStream {
    let address = "10.77.0.2:80".parse().unwrap();
    let connect = || TcpStream::connect_timeout(&address, TIMEOUT).unwrap();
    let mut client = server.lab.peer().run(connect).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    client
}

/// With space for four clients, one address gets one of them, unless `--per-peer` permits more.
fn share() {
    let server = Server::start_with("--clients 4", "share", &[("file", b"hello")]);
    let held = client(&server, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut line = String::new();
    BufReader::new(&held).read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    // The server reads a refused client's request, although it does not answer it, so that no reset destroys
    // the refusal.
    for _ in 0..50 {
        let mut told = String::new();
        let mut turned_away = client(&server, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
        turned_away.read_to_string(&mut told).unwrap();
        assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
    }
    drop(held);
}

/// The page of ten thousand names has some megabytes; a client that does not read it costs the server only
/// one piece of it and its connection's buffer.
fn silent_readers() {
    const READERS: u64 = 40;
    const MOST_BYTES_EACH: u64 = 1 << 20;
    let server = Server::start("silent", &[]);
    for index in 0..10_000 {
        let name = format!("{index:05}-{}", "%".repeat(200));
        fs::File::create(server.www().join(name)).unwrap();
    }
    let before = server.resident_bytes();
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let clients: Vec<_> = (0..READERS).map(|_| client(&server, request)).collect();
    // Every client has received the beginning of its answer, so all are being answered; then none reads any
    // further.
    for client in &clients {
        let mut line = String::new();
        BufReader::with_capacity(64, client).read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    }
    let mut most = 0;
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(100));
        most = most.max(server.resident_bytes().saturating_sub(before) / READERS);
    }
    assert!(most < MOST_BYTES_EACH, "{most} bytes for each");
    // A client that does read gets everything.
    let (code, page) = server.curl("http://10.77.0.2/");
    assert_eq!(code, 0);
    assert_eq!(page.windows(4).filter(|four| four == b"<li>").count(), 10_000);
    drop(clients);
}

/// Requests for parts of 2 KiB, each from a different page of 64 KiB: no connection keeps the pages in
/// memory.
fn small_parts() {
    const READERS: usize = 100;
    const PARTS: usize = 80;
    const PAGE: usize = 64 << 10;
    const CACHE_BYTES: u64 = 64 << 20;
    const MOST_BYTES_EACH: u64 = 512 << 10;
    let server = Server::start("parts", &[]);
    let file = fs::File::create(server.www().join("file")).unwrap();
    file.set_len((READERS * PARTS * PAGE) as u64).unwrap();
    let before = server.resident_bytes();
    let asked = |part: usize| {
        let (from, to) = (part * PAGE, part * PAGE + 2_047);
        format!("GET /file HTTP/1.1\r\nHost: x\r\nRange: bytes={from}-{to}\r\n\r\n")
    };
    let asks =
        |reader: usize| (reader * PARTS..(reader + 1) * PARTS).map(asked).collect::<String>();
    let clients: Vec<_> = (0..READERS).map(|reader| client(&server, &asks(reader))).collect();
    for client in &clients {
        let mut line = String::new();
        BufReader::with_capacity(64, client).read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 206 Partial Content\r\n");
    }
    let mut most = 0;
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(100));
        most = most.max(server.resident_bytes().saturating_sub(before));
    }
    let most_each = most.saturating_sub(CACHE_BYTES) / READERS as u64;
    assert!(most_each < MOST_BYTES_EACH, "{most_each} bytes for each");
    drop(clients);
}

/// Many more slow readers than `--orphans` allows are served, and none is reset.
fn slow() {
    const CLIENTS: usize = 300;
    let content = bytes(150_000);
    let flags = "--per-peer 512 --orphans 8";
    let server = Server::start_with(flags, "slow", &[("file", &content)]);
    let asks = "GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| (client(&server, asks), Vec::new())).collect();
    // 40,000 bytes a second for each client. A blocking read waits for slower ones.
    while !clients.is_empty() {
        clients.retain_mut(|(client, heard)| {
            let mut piece = [0; 4_000];
            let read = client.read(&mut piece).unwrap();
            heard.extend_from_slice(&piece[..read]);
            assert!(read > 0 || heard.ends_with(&content), "{} bytes have come", heard.len());
            read > 0
        });
        thread::sleep(Duration::from_millis(100));
    }
}

/// The server closes first, so each visit leaves a connection in TIME-WAIT, which must not block the next
/// visit.
fn visits() {
    const VISITS: usize = 2_000;
    let mut server = Server::start("visits", &[("file", b"hello")]);
    for _ in 0..VISITS {
        let request = "GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut told = String::new();
        client(&server, request).read_to_string(&mut told).unwrap();
        assert!(told.ends_with("hello"), "{told}");
        assert_eq!(server.next_access()["status"], 200);
    }
}
