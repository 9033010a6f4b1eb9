//! Readiness of streams and listeners, with `mio` and with [`Readiness`].

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rxo_host::{Readiness, TcpStream};

use crate::threads::Running;
use crate::world::{World, fill, pattern, server};

fn register(poll: &Poll, source: &impl AsRawFd, token: usize) {
    let registry = poll.registry();
    registry
        .register(&mut SourceFd(&source.as_raw_fd()), Token(token), Interest::READABLE)
        .unwrap();
}

/// Polls, and returns the tokens that are ready.
fn ready(poll: &mut Poll, timeout: Duration) -> Vec<usize> {
    let mut events = Events::with_capacity(8);
    poll.poll(&mut events, Some(timeout)).unwrap();
    let mut tokens: Vec<_> = events.iter().map(|event| event.token().0).collect();
    tokens.sort_unstable();
    tokens
}

/// The peer acknowledges nothing here. Sent data does not count as unsent, and a sender that waits for space
/// is told.
#[test]
fn what_is_sent_makes_room_below_a_limit_of_unsent_data() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (stream, _accepted) = world.connected(&listener);
    let (readiness, mut tokens) = (Readiness::new(), Vec::new());
    readiness.watch(&stream, 7).unwrap();
    assert_eq!(stream.set_most_unsent(Some(0)).unwrap_err().kind(), ErrorKind::InvalidInput);
    stream.set_most_unsent(Some(4_000)).unwrap();
    stream.set_nodelay(true).unwrap();
    let data = pattern(10_000);
    assert_eq!((fill(&stream, &data), fill(&stream, &data)), (4_000, 0));
    world.client_alone();
    readiness.wait(&mut tokens, Some(Duration::ZERO));
    assert_eq!((tokens, stream.unacknowledged_bytes()), (vec![7], 4_000));
    assert_eq!((fill(&stream, &data), fill(&stream, &data)), (4_000, 0));
    stream.set_most_unsent(None).unwrap();
    assert_eq!(fill(&stream, &data), 10_000);
}

#[test]
fn readiness_comes_once_for_each_call_that_would_have_blocked() {
    let mut world = World::new();
    let listener = world.listen(4);
    let mut poll = Poll::new().unwrap();
    register(&poll, &listener, 0);
    assert_eq!(ready(&mut poll, Duration::ZERO), [0], "look once");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(ready(&mut poll, Duration::ZERO), []);

    let mut stream = world.at_client().connect_nonblocking(server()).unwrap();
    world.settle();
    assert_eq!(ready(&mut poll, Duration::ZERO), [0]);
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.set_nonblocking(true).unwrap();
    register(&poll, &accepted, 1);
    assert_eq!(ready(&mut poll, Duration::ZERO), [1]);
    assert_eq!(accepted.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(ready(&mut poll, Duration::ZERO), []);

    stream.write_all(b"ready").unwrap();
    world.settle();
    assert_eq!(ready(&mut poll, Duration::ZERO), [1]);
    let mut text = [0; 9];
    assert_eq!(accepted.read(&mut text).unwrap(), 5);
    assert_eq!(accepted.read(&mut text).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(stream);
    world.settle();
    assert_eq!(ready(&mut poll, Duration::ZERO), [1], "the end is something to read");
    assert_eq!(accepted.read(&mut text).unwrap(), 0);
}

#[test]
fn opening_is_readiness_too() {
    let mut world = World::new();
    let _listener = world.listen(4);
    let mut poll = Poll::new().unwrap();
    let stream = world.at_client().connect_nonblocking(server()).unwrap();
    register(&poll, &stream, 0);
    assert_eq!(ready(&mut poll, Duration::ZERO), [0], "look once");
    assert!(!stream.is_connected().unwrap());
    assert_eq!(ready(&mut poll, Duration::ZERO), [], "whoever asked need not ask again and again");
    world.settle();
    assert_eq!(ready(&mut poll, Duration::ZERO), [0]);
    assert!(stream.is_connected().unwrap());
}

#[test]
fn room_to_write_is_readiness_too() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (stream, accepted) = world.connected(&listener);
    let mut poll = Poll::new().unwrap();
    register(&poll, &stream, 0);
    assert_eq!(ready(&mut poll, Duration::ZERO), [0]);
    let data = pattern(1_000_000);
    // Writes until the send buffer and the peer's receive buffer are full.
    while fill(&stream, &data) > 0 {
        world.pass(Duration::from_millis(1));
    }
    assert_eq!(ready(&mut poll, Duration::ZERO), []);
    while !crate::world::drain(&accepted).unwrap().0.is_empty() {
        world.pass(Duration::from_millis(10));
    }
    assert_eq!(ready(&mut poll, Duration::ZERO), [0]);
}

/// An echo server with one thread, like programs that use `mio`.
#[test]
fn a_server_on_mio_serves_several_at_once() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 16).unwrap();
    listener.set_nonblocking(true).unwrap();
    let clients = 5;
    let data = pattern(300_000);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let stream = client.connect(server()).unwrap();
                let writer = stream.try_clone().unwrap();
                let data = &data;
                let write = scope.spawn(move || {
                    (&writer).write_all(data).unwrap();
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let mut back = Vec::new();
                (&stream).read_to_end(&mut back).unwrap();
                assert!(back == *data);
                write.join().unwrap();
            });
        }
        serve(&listener, clients);
    });
    running.stop();
}

struct Served {
    stream: TcpStream,
    pending: Vec<u8>,
    is_done: bool,
}

fn serve(listener: &rxo_host::TcpListener, clients: usize) {
    let mut poll = Poll::new().unwrap();
    register(&poll, listener, 0);
    let mut streams: Vec<Option<Served>> = Vec::new();
    while streams.len() < clients || streams.iter().any(Option::is_some) {
        let tokens = ready(&mut poll, Duration::from_secs(20));
        assert!(!tokens.is_empty(), "it hangs");
        for token in tokens {
            if token == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    register(&poll, &stream, streams.len() + 1);
                    streams.push(Some(Served { stream, pending: Vec::new(), is_done: false }));
                }
            } else if let Some(served) = &mut streams[token - 1]
                && echo(served)
            {
                streams[token - 1] = None;
            }
        }
    }
}

/// Echoes until a call would block. Returns `true` when all is done.
fn echo(served: &mut Served) -> bool {
    let mut buffer = [0; 10_000];
    loop {
        while !served.pending.is_empty() {
            match served.stream.write(&served.pending) {
                Ok(written) => drop(served.pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("{error}"),
            }
        }
        if served.is_done {
            return true;
        }
        match served.stream.read(&mut buffer) {
            Ok(0) => served.is_done = true,
            Ok(read) => served.pending.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns the tokens reported since the last call.
fn told(readiness: &Readiness) -> Vec<u64> {
    let mut tokens = Vec::new();
    readiness.wait(&mut tokens, Some(Duration::ZERO));
    tokens.sort_unstable();
    tokens
}

#[test]
fn of_many_sockets_only_those_come_that_changed() {
    let mut world = World::new();
    let (readiness, listener) = (Readiness::new(), world.listen(64));
    listener.set_nonblocking(true).unwrap();
    readiness.watch_listener(&listener, 1_000).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let connect = || world.at_client().connect_nonblocking(server()).unwrap();
    let mut clients: Vec<_> = (0..40).map(|_| connect()).collect();
    world.settle();
    assert_eq!(told(&readiness), [1_000]);
    let mut accepted: Vec<_> = (0..40).map(|_| listener.accept().unwrap().0).collect();
    for (stream, token) in accepted.iter_mut().zip(0..) {
        stream.set_nonblocking(true).unwrap();
        readiness.watch(stream, token).unwrap();
        assert_eq!(stream.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert_eq!(readiness.watch(&accepted[0], 1).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(told(&readiness), []);
    for talker in [3, 17] {
        clients[talker].write_all(b"ready").unwrap();
    }
    world.settle();
    assert_eq!(told(&readiness), [3, 17]);
    // A socket is reported again only after a read has found it empty.
    clients[3].write_all(b"again").unwrap();
    world.settle();
    assert_eq!(told(&readiness), []);
    readiness.notify(7);
    assert_eq!(told(&readiness), [7]);
}

#[test]
fn a_stream_comes_when_there_is_room_and_when_it_breaks() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (mut stream, accepted) = world.connected(&listener);
    let readiness = Readiness::new();
    readiness.watch(&stream, 5).unwrap();
    let data = pattern(1_000_000);
    while fill(&stream, &data) > 0 {
        world.pass(Duration::from_millis(1));
    }
    assert_eq!(told(&readiness), []);
    while !crate::world::drain(&accepted).unwrap().0.is_empty() {
        world.pass(Duration::from_millis(10));
    }
    assert_eq!(told(&readiness), [5]);
    while fill(&stream, &data) > 0 {
        world.pass(Duration::from_millis(1));
    }
    accepted.abort();
    world.settle();
    assert_eq!(told(&readiness), [5]);
    assert!(stream.write(b"more").unwrap_err().kind() != ErrorKind::WouldBlock);
}

#[test]
fn a_thread_that_waits_for_any_of_them_is_woken() {
    let readiness = Readiness::new();
    let other = readiness.clone();
    let teller = std::thread::spawn(move || other.notify(9));
    let mut tokens = Vec::new();
    readiness.wait(&mut tokens, None);
    assert_eq!(tokens, [9]);
    teller.join().unwrap();
}
