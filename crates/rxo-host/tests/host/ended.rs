//! Connections that are reset after a last answer, like those of servers that close with a request unread:
//! every way of reading returns the answer, then the error once, then the end of the stream.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::time::Duration;

use rxo_host::{Readiness, TcpStream};

use crate::world::{World, fill, pattern};

const ANSWER: &[u8] = b"HTTP/1.1 413 Content Too Large";

/// Returns the client's stream after the server has answered and closed with a request unread. The answer and
/// the reset are both on the link when the client runs its next round.
fn answered(world: &mut World) -> TcpStream {
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    fill(&client, b"a request that nobody reads");
    world.settle();
    assert_eq!(fill(&accepted, ANSWER), ANSWER.len());
    world.server_alone();
    drop(accepted);
    world.settle();
    client
}

/// Returns the outcomes of four reads: more than there are to report.
fn outcomes(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Vec<String> {
    let mut text = [0; 100];
    let outcome = |_| match read(&mut text) {
        Ok(bytes) => String::from_utf8_lossy(&text[..bytes]).into_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    EXPECTED.iter().map(outcome).collect()
}

const EXPECTED: [&str; 4] = ["HTTP/1.1 413 Content Too Large", "ConnectionReset", "", ""];

#[test]
fn a_stream_reads_the_answer_then_the_failure_then_the_end() {
    let mut client = answered(&mut World::new());
    assert_eq!(outcomes(|to| client.read(to)), EXPECTED);
    // Reading the error does not hide it from writes and `take_error`.
    assert_eq!(client.write(b"more").unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(client.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn reading_in_place_gets_the_same() {
    let client = answered(&mut World::new());
    let read = |to: &mut [u8]| {
        client.read_in_place(|pieces: &[IoSlice<'_>]| {
            to[..pieces[0].len()].copy_from_slice(&pieces[0]);
            pieces[0].len()
        })
    };
    assert_eq!(outcomes(read), EXPECTED);
}

#[test]
fn a_look_ahead_sees_the_answer_as_often_as_it_likes() {
    let mut client = answered(&mut World::new());
    let mut text = [0; 100];
    for _ in 0..3 {
        assert_eq!(client.peek(&mut text).unwrap(), ANSWER.len());
    }
    assert_eq!(client.read(&mut text).unwrap(), ANSWER.len());
    assert_eq!(client.peek(&mut text).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(client.read(&mut text).unwrap(), 0, "as Linux: a look at the failure takes it");
}

#[test]
fn a_reader_that_comes_late_gets_the_answer() {
    let client = answered(&mut World::new());
    let (told, got) = std::sync::mpsc::channel();
    client.read_with(move |text| told.send(text.to_vec()).unwrap());
    assert_eq!(got.recv(), Ok(ANSWER.to_vec()));
    assert_eq!((&client).read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn readiness_tells_of_the_answer_and_of_the_end() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut client, accepted) = world.connected(&listener);
    let readiness = Readiness::new();
    readiness.watch(&client, 7).unwrap();
    fill(&client, b"a request that nobody reads");
    world.settle();
    assert_eq!(client.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut ready = Vec::new();
    readiness.wait(&mut ready, Some(Duration::ZERO));
    assert!(ready.is_empty(), "{ready:?}");
    assert_eq!(fill(&accepted, ANSWER), ANSWER.len());
    world.server_alone();
    drop(accepted);
    world.settle();
    readiness.wait(&mut ready, Some(Duration::ZERO));
    assert_eq!(ready, [7]);
    assert_eq!(outcomes(|to| client.read(to)), EXPECTED);
}

/// An answer of more than one buffer, in aggregates and in the window's last segment.
#[test]
fn a_long_answer_arrives_whole() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    fill(&client, b"request");
    world.settle();
    let answer = pattern(60_000);
    assert_eq!(fill(&accepted, &answer), answer.len());
    world.pass(Duration::from_secs(1));
    drop(accepted);
    world.settle();
    let mut got = Vec::new();
    let error = (&client).read_to_end(&mut got).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(got == answer);
}

/// A connection that is reset before `accept` is accepted nevertheless, as on Linux.
#[test]
fn text_of_a_client_that_left_before_it_was_accepted_is_read() {
    let mut world = World::new();
    let listener = world.listen(1);
    let client = world.at_client().connect_nonblocking(crate::world::server()).unwrap();
    world.settle();
    fill(&client, b"goodbye");
    world.settle();
    client.abort();
    world.settle();
    let (mut accepted, _) = listener.accept().unwrap();
    assert_eq!(outcomes(|to| accepted.read(to)), ["goodbye", "ConnectionReset", "", ""]);
}

#[test]
fn text_of_a_peer_that_vanished_is_read() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, mut accepted) = world.connected(&listener);
    fill(&client, b"goodbye");
    world.settle();
    fill(&accepted, b"an answer that does not arrive");
    // Only the server runs.
    for _ in 0..400 {
        world.now = world.now + Duration::from_secs(1);
        world.server_alone();
    }
    assert_eq!(outcomes(|to| accepted.read(to)), ["goodbye", "TimedOut", "", ""]);
}

#[cfg(feature = "tokio")]
#[test]
fn a_task_reads_the_answer_then_the_failure_then_the_end() {
    use tokio::io::AsyncReadExt;
    let mut client = answered(&mut World::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(outcomes(|to| runtime.block_on(AsyncReadExt::read(&mut client, to))), EXPECTED);
}
