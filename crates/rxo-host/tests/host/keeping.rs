//! The timeouts for a peer that does not answer.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use rxo_host::TcpStream;
use rxo_tcp::KeepAlive;

use crate::world::*;

/// Returns an established connection of the client; also returns the listener and the other end, to keep them
/// alive.
fn connected(world: &mut World) -> (TcpStream, impl Sized + use<>) {
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    (stream, (listener, accepted))
}

/// Runs only the client. Returns the time after which the connection fails, and the error.
fn ends(world: &mut World, stream: &TcpStream, within: Duration) -> Option<(Duration, ErrorKind)> {
    let start = world.now;
    while world.now.since(start) < within {
        world.client.turn(world.now).unwrap();
        if let Some(error) = stream.take_error().unwrap() {
            return Some((world.now.since(start), error.kind()));
        }
        world.now = world.now + Duration::from_millis(10);
    }
    None
}

const ASKED_SOON: KeepAlive =
    KeepAlive { idle: Duration::from_secs(20), interval: Duration::from_secs(5), probes: 3 };

/// RFC 9293, section 3.8.4 (MUST-24): keep-alive is set per connection, and off by default.
#[test]
fn keep_alive_is_switched_while_the_connection_lasts() {
    let mut world = World::new();
    let (stream, _peer) = connected(&mut world);
    assert_eq!(ends(&mut world, &stream, Duration::from_secs(100)), None);
    stream.set_keep_alive(Some(ASKED_SOON)).unwrap();
    world.client.turn(world.now).unwrap();
    let (after, why) = ends(&mut world, &stream, Duration::from_secs(100)).unwrap();
    assert_eq!((after.as_secs(), why), (35, ErrorKind::TimedOut));
}

#[test]
fn a_peer_that_answers_is_kept() {
    let mut world = World::new();
    let (stream, _peer) = connected(&mut world);
    stream.set_keep_alive(Some(ASKED_SOON)).unwrap();
    world.pass(Duration::from_secs(100));
    assert!(stream.is_connected().unwrap());
    // With keep-alive off, the silent peer makes no difference.
    stream.set_keep_alive(None).unwrap();
    assert_eq!(ends(&mut world, &stream, Duration::from_secs(100)), None);
}

#[test]
fn a_single_probe_may_not_decide() {
    let mut world = World::new();
    let (stream, _peer) = connected(&mut world);
    let refused = stream.set_keep_alive(Some(KeepAlive { probes: 1, ..ASKED_SOON }));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// RFC 5482, section 3: the user timeout applies to outstanding data and to data written later.
#[test]
fn a_user_timeout_is_that_of_the_connection() {
    let mut world = World::new();
    let (mut stream, _peer) = connected(&mut world);
    stream.write_all(b"nobody hears it").unwrap();
    assert_eq!(ends(&mut world, &stream, Duration::from_secs(30)), None);
    stream.set_user_timeout(Duration::from_secs(3)).unwrap();
    world.client.turn(world.now).unwrap();
    let (after, why) = ends(&mut world, &stream, Duration::from_secs(30)).unwrap();
    assert_eq!((after.as_secs(), why), (3, ErrorKind::TimedOut));
}
