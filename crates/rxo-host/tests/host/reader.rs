//! An application whose reader gets the text on the worker's thread.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};

use rxo_host::TcpStream;

use crate::world::{World, drain, fill, pattern};

/// What a reader has got.
type Got = Arc<Mutex<Vec<u8>>>;

fn read_with(stream: &TcpStream) -> Got {
    let got = Got::default();
    let to = Arc::clone(&got);
    stream.read_with(move |text| to.lock().unwrap().extend_from_slice(text));
    got
}

#[test]
fn a_reader_gets_everything_before_the_end_is_seen() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    let data = pattern(3_000_000);
    // Some text is there before the reader is.
    let mut sent = fill(&client, &data);
    world.settle();
    let got = read_with(&accepted);
    while sent < data.len() {
        sent += fill(&client, &data[sent..]);
        world.settle();
        assert_eq!((&accepted).read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    client.shutdown(Shutdown::Write).unwrap();
    world.settle();
    assert!(*got.lock().unwrap() == data);
    assert_eq!(drain(&accepted).unwrap(), (Vec::new(), true));
}

#[test]
fn the_window_stays_open_though_nobody_reads() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    let got = read_with(&accepted);
    let data = pattern(40_000);
    for round in 1..=50 {
        assert_eq!(fill(&client, &data), data.len());
        world.settle();
        assert_eq!(got.lock().unwrap().len(), round * data.len());
        assert_eq!(client.statistics().unsent, 0);
    }
}

#[test]
fn a_reader_gets_nothing_after_reading_was_shut_down() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    let got = read_with(&accepted);
    fill(&client, b"before");
    world.settle();
    accepted.shutdown(Shutdown::Read).unwrap();
    fill(&client, b"after");
    world.settle();
    assert_eq!(*got.lock().unwrap(), b"before");
}

#[test]
fn a_failure_ends_the_wait_for_the_end() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    let got = read_with(&accepted);
    fill(&client, b"text");
    world.settle();
    client.abort();
    world.settle();
    assert_eq!(*got.lock().unwrap(), b"text");
    assert_eq!(drain(&accepted).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
