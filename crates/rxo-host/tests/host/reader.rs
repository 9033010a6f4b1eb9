//! An application whose reader receives data on the worker's thread.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use rxo_host::TcpStream;

use crate::world::{World, drain, fill, pattern};

/// The data that a reader has received.
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
    // Some data arrives before the reader is set.
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

#[test]
fn a_reader_gets_text_that_comes_with_a_reset() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (client, accepted) = world.connected(&listener);
    let got = read_with(&accepted);
    fill(&client, b"the last answer");
    world.client_alone();
    client.abort();
    world.settle();
    assert_eq!(*got.lock().unwrap(), b"the last answer");
    assert_eq!(drain(&accepted).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(drain(&accepted).unwrap(), (Vec::new(), true));
}

/// A reader that uses a stream gets an error: two readers that wrote to each other's streams could deadlock.
#[test]
fn a_reader_may_use_no_stream() {
    let mut world = World::new();
    let listener = world.listen(2);
    let ((client, accepted), (_other, to)) =
        (world.connected(&listener), world.connected(&listener));
    client.set_nodelay(true).unwrap();
    let (told, kinds) = channel();
    for mut stream in [to.try_clone().unwrap(), accepted.try_clone().unwrap()] {
        let told = told.clone();
        let reader =
            move |_: &[u8]| told.send(stream.write(b"onwards").unwrap_err().kind()).unwrap();
        accepted.read_with(reader);
        fill(&client, b"text");
        world.settle();
        assert_eq!(kinds.try_recv(), Ok(ErrorKind::Deadlock));
    }
    assert_eq!(fill(&to, b"after"), 5, "the thread is free again");
}

#[test]
fn readers_that_hold_each_others_streams_end_with_their_connections() {
    let mut world = World::new();
    let listener = world.listen(2);
    let (one, other) = (world.connected(&listener), world.connected(&listener));
    let token = Arc::new(());
    for (mine, others) in [(&one.1, &other.1), (&other.1, &one.1)] {
        let held = (Arc::clone(&token), others.try_clone().unwrap());
        mine.read_with(move |_| _ = &held);
    }
    one.0.abort();
    other.0.abort();
    world.settle();
    assert_eq!(Arc::strong_count(&token), 1);
    let held = Arc::clone(&token);
    one.1.read_with(move |_| _ = &held);
    assert_eq!(Arc::strong_count(&token), 1, "it would get nothing");
}
