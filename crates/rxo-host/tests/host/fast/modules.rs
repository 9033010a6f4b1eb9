//! The modules besides the one for pure ACKs see consumed frames too, and can be switched while the host
//! runs.

use rxo_host::{FastModules, FastPath};

use crate::world::{World, drain, fill, options, pattern};

fn world(path: &FastPath) -> World {
    let options = rxo_device::MemoryOptions { gso_bytes: 0, ..options() };
    World::with(options, |config| config.fast_path = path.clone())
}

#[test]
fn accounts_have_consumed_acks_too() {
    let modules = FastModules::PURE_ACK.with(FastModules::ACCOUNTING).with(FastModules::SYN_FLOOD);
    let mut world = world(&FastPath { modules, ..FastPath::default() });
    let listener = world.listen(4);
    let (stream, accepted) = world.connected(&listener);
    fill(&stream, &pattern(50_000));
    world.settle();
    assert_eq!(drain(&accepted).unwrap().0.len(), 50_000);
    let frames = world.client.counters().source.frames;
    let fast = world.client.counters().fast;
    assert!(fast.consumed > 2, "{fast:?}");
    let account = fast.accounts[0];
    assert_eq!(account.name, Some(("10.0.0.0/24".parse().unwrap(), None)));
    assert_eq!(account.frames, frames);
    assert!(account.acks >= fast.consumed);
    let fast = world.server.counters().fast;
    assert_eq!((fast.syns, fast.half_open), (1, 0));
}

#[test]
fn a_filter_drops_before_anything_sees_the_packet_until_it_is_off() {
    let filter = vec!["drop to port 80".parse().unwrap()];
    let modules = FastModules::OFF.with(FastModules::FILTER).with(FastModules::ACCOUNTING);
    let mut world = world(&FastPath { modules, filter, ..FastPath::default() });
    let listener = world.listen(4);
    let stream = world.at_client().connect_nonblocking(crate::world::server()).unwrap();
    world.settle();
    let fast = world.server.counters().fast;
    assert!(fast.filtered > 0 && fast.accounts.is_empty(), "{fast:?}");
    assert!(!stream.is_connected().unwrap());
    world.at_server().set_fast_path(FastModules::ACCOUNTING);
    world.pass(std::time::Duration::from_secs(2));
    assert!(stream.is_connected().unwrap());
    assert!(listener.accept().is_ok());
}

/// The filter runs first: a dropped ACK is neither consumed nor counted as consumed.
#[test]
fn a_filter_drops_an_ack_that_would_be_consumed() {
    let filter = vec!["drop from 10.0.0.2 port 80".parse().unwrap()];
    let mut world =
        world(&FastPath { modules: FastModules::PURE_ACK, filter, ..FastPath::default() });
    let listener = world.listen(4);
    let (stream, accepted) = world.connected(&listener);
    world.at_client().set_fast_path(FastModules::PURE_ACK.with(FastModules::FILTER));
    fill(&stream, &pattern(2 * stream.statistics().mss as usize));
    world.settle();
    let unacknowledged = || stream.statistics().snd_nxt - stream.statistics().snd_una;
    let fast = world.client.counters().fast;
    assert!(fast.filtered > 0 && fast.consumed == 0, "{fast:?}");
    assert_eq!((fast.unseen, fast.fallbacks()), (0, 1), "the SYN's answer: {fast:?}");
    assert!(unacknowledged() > 0);
    world.at_client().set_fast_path(FastModules::PURE_ACK);
    world.pass(std::time::Duration::from_secs(2));
    let fast = world.client.counters().fast;
    assert_eq!((unacknowledged(), fast.unseen), (0, fast.consumed), "{fast:?}");
    assert!(drain(&accepted).unwrap().0.len() > 2_000);
}
