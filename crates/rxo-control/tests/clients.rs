//! Tests of the clients of a control socket: many, slow, and disconnected ones.
#![allow(clippy::unwrap_used, reason = "functions of tests, which the lint does not see")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rxo_control::{Answer, AskError, MOST_CLIENTS, MOST_REQUEST_BYTES, Request, Server, Session};
use serde_json::json;

/// A socket in the temporary folder.
struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> (Self, UnixListener) {
        let path = std::env::temp_dir().join(format!("rxo-ctl-{name}-{}", std::process::id()));
        _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        (Self(path), listener)
    }

    /// Starts a server that answers with as many bytes as the line has; "large" gets a long answer.
    fn served(name: &str) -> (Self, Server) {
        let (socket, listener) = Self::new(name);
        let answer = |line: &[u8]| {
            let request = Request::parse(line).map(|request| request.name).unwrap_or_default();
            let bytes = if request == "large" { 4 << 20 } else { line.len() };
            Answer { request, result: Ok(json!("x".repeat(bytes))) }
        };
        (socket, Server::start(listener, answer).unwrap())
    }

    fn asks(&self, name: &str) -> Result<Answer, AskError> {
        Session::open(&self.0)?.ask(&Request { name: name.into(), ..Request::default() })
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

fn line(stream: UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_session_asks_again_and_again() {
    let (socket, _server) = Socket::served("again");
    let mut session = Session::open(&socket.0).unwrap();
    for name in ["one", "two", "large", "four"] {
        let answer = session.ask(&Request { name: name.into(), ..Request::default() }).unwrap();
        assert_eq!(answer.request, name);
        let bytes = answer.result.unwrap().as_str().unwrap().len();
        assert_eq!(bytes > 1 << 20, name == "large");
    }
}

/// A process drops a client without requests after ten seconds; here it does so at once.
#[test]
fn a_session_that_was_dropped_connects_again() {
    let (socket, listener) = Socket::new("dropped");
    listener.set_nonblocking(false).unwrap();
    let mut session = Session::open(&socket.0).unwrap();
    drop(listener.accept().unwrap());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let asked = line(stream.try_clone().unwrap());
        let request = Request::parse(asked.trim_end().as_bytes()).unwrap().name;
        let answer = Answer { request, result: Ok(json!(1)) };
        writeln!(&stream, "{}", answer.line()).unwrap();
    });
    let answer = session.ask(&Request { name: "late".into(), ..Request::default() }).unwrap();
    assert_eq!(answer.request, "late");
    server.join().unwrap();
}

#[test]
fn one_who_says_nothing_or_takes_nothing_delays_nobody() {
    let (socket, _server) = Socket::served("slow");
    let silent = socket.connect();
    let mut half = socket.connect();
    half.write_all(b"{\"request\"").unwrap();
    // The client does not read its answer of 4 MiB, which exceeds any socket buffer.
    let mut stuffed = socket.connect();
    stuffed.write_all(b"{\"request\":\"large\"}\n").unwrap();
    let mut gone = socket.connect();
    gone.write_all(b"{\"request\":\"large\"}\n").unwrap();
    drop(gone);
    for _ in 0..20 {
        assert_eq!(socket.asks("count").unwrap().request, "count");
    }
    half.write_all(b":\"late\"}\n").unwrap();
    assert!(line(half).contains("late"));
    drop((silent, stuffed));
}

#[test]
fn the_last_line_of_a_pipe_needs_no_end() {
    let (socket, _server) = Socket::served("pipe");
    let mut stream = socket.connect();
    stream.write_all(b"{\"request\":\"a\"}\n{\"request\":\"b\"}\n{\"request\":\"c\"}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let names: Vec<_> = text.lines().map(|line| Answer::parse(line).unwrap().request).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn one_client_too_many_is_told_so() {
    let (socket, _server) = Socket::served("many");
    let mut there: Vec<_> = (0..MOST_CLIENTS).map(|_| socket.connect()).collect();
    // Once the last client has an answer, all are connected.
    there.last_mut().unwrap().write_all(b"{\"request\":\"in\"}\n").unwrap();
    assert!(line(there.pop().unwrap()).contains("\"in\""));
    there.push(socket.connect());
    let said = line(socket.connect());
    assert!(said.contains("16 clients are there; end one"), "{said}");
    drop(there);
    let asked_until_one_has_gone = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        socket.asks("count").ok().filter(|answer| answer.result.is_ok())
    });
    assert!(asked_until_one_has_gone.is_some());
}

#[test]
fn a_line_that_is_too_long_is_refused() {
    let (socket, _server) = Socket::served("long");
    let mut stream = socket.connect();
    stream.write_all(&vec![b' '; MOST_REQUEST_BYTES]).unwrap();
    assert!(line(stream).contains("a line may have 4096 bytes; send a shorter one"));
}

#[test]
fn a_process_that_has_ended_is_named_with_the_remedy() {
    let (socket, server) = Socket::served("ended");
    drop(server);
    let said = socket.asks("x").unwrap_err().to_string();
    assert!(said.starts_with("nobody listens on ") && said.contains("--control "), "{said}");
    fs::remove_file(&socket.0).unwrap();
    let said = socket.asks("x").unwrap_err().to_string();
    assert!(said.starts_with("there is no socket "), "{said}");
}

#[test]
fn one_who_is_no_rxo_is_called_so() {
    let (socket, listener) = Socket::new("other");
    listener.set_nonblocking(false).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 ready\r\n").unwrap();
    });
    let said = socket.asks("x").unwrap_err().to_string();
    assert!(said.contains("does not answer as rxo does; give the socket of --control"), "{said}");
    other.join().unwrap();
}
