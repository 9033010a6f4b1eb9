//! A device without room: text waits in its connections, and everything else goes on.

use std::time::Duration;

use rxo_device::FrameSink;
use rxo_host::TcpStream;
use rxo_wire::parse_ip;

use crate::world::{World, drain, fill, options, pattern};

/// A client's end and the server's.
type Ends = (TcpStream, TcpStream);

/// Connections between two hosts, and then the server's device has room for so many packets.
fn blocked(connections: usize, room: usize) -> (World, Vec<Ends>) {
    let mut world =
        World::with(options(), |config| config.tcp.user_timeout = Duration::from_secs(30));
    let listener = world.listen(connections);
    let ends = (0..connections).map(|_| world.connected(&listener)).collect();
    world.settle();
    world.back.set_room(Some(room));
    (world, ends)
}

fn turn_server(world: &mut World) {
    while !world.server.turn(world.now).unwrap().is_idle() {}
}

/// What the server has sent and nobody has taken: in the device, and waiting for room.
fn unread(world: &World) -> u32 {
    world.back.sink().load().map_or(0, |load| load.unread)
}

/// Gives the device room for what waits, and returns how many packets with text, and without, come out.
fn let_out(world: &mut World) -> (usize, usize) {
    let waiting = unread(world) as usize;
    world.back.set_room(Some(waiting));
    world.server.turn(world.now).unwrap();
    let has_text = |bytes: &[u8]| parse_ip(bytes).unwrap().payload_bytes() > 0;
    let sent = world.back.take_all();
    let with = sent.iter().filter(|sent| has_text(&sent.bytes)).count();
    (with, sent.len() - with)
}

#[test]
fn text_waits_in_its_connections_and_all_of_it_comes() {
    let (mut world, ends) = blocked(50, 0);
    let data = pattern(60_000);
    for (_, server) in &ends {
        assert_eq!(fill(server, &data), data.len());
    }
    turn_server(&mut world);
    let first = unread(&world);
    assert!((1..=10).contains(&first), "only the first can have tried: {first}");
    assert!(world.server.poll_at().is_none_or(|at| at > world.now), "it must not turn in vain");
    world.back.set_room(None);
    assert!(world.server.poll_at().is_none_or(|at| at > world.now), "nobody has told it");
    let mut got = vec![Vec::new(); ends.len()];
    for _ in 0..100 {
        world.pass(Duration::from_millis(5));
        for ((client, _), got) in ends.iter().zip(&mut got) {
            got.extend(drain(client).unwrap().0);
        }
    }
    assert!(got.iter().all(|got| *got == data));
    assert_eq!(world.server.counters().sink.dropped, 0);
}

#[test]
fn acknowledgements_leave_before_text_that_waits() {
    let (mut world, ends) = blocked(3, 0);
    fill(&ends[0].1, &pattern(60_000));
    turn_server(&mut world);
    let before = unread(&world) as usize;
    // The second has text and owes an acknowledgement, which would ride along; the third owes one.
    fill(&ends[1].1, &pattern(60_000));
    for (client, _) in &ends[1..] {
        fill(client, &pattern(SEGMENTS));
    }
    world.client.turn(world.now).unwrap();
    turn_server(&mut world);
    world.now = world.now + Duration::from_millis(100);
    turn_server(&mut world);
    let (texts, acks) = let_out(&mut world);
    assert_eq!(texts, before, "the first one's");
    assert!((2..=4).contains(&acks), "{acks}");
    for (_, server) in &ends[1..] {
        assert_eq!(drain(server).unwrap().0.len(), SEGMENTS);
    }
}

#[test]
fn a_reset_leaves_and_a_fin_follows_its_text() {
    let (mut world, ends) = blocked(3, 0);
    let [(_, first), (reset, second), (closed, third)] = ends.try_into().unwrap();
    fill(&first, &pattern(60_000));
    turn_server(&mut world);
    let before = unread(&world);
    fill(&second, &pattern(1_000));
    second.abort();
    fill(&third, &pattern(1_000));
    drop(third);
    turn_server(&mut world);
    assert_eq!(unread(&world), before + 1, "the reset");
    world.back.set_room(None);
    world.pass(Duration::from_millis(10));
    assert!(drain(&reset).is_err());
    assert_eq!(drain(&closed).unwrap(), (pattern(1_000), true));
}

#[test]
fn a_peer_that_takes_nothing_is_given_up_while_the_device_is_blocked() {
    let (mut world, ends) = blocked(2, 0);
    for (_, server) in &ends {
        fill(server, &pattern(60_000));
    }
    let mut turns = 0;
    let end = world.now + Duration::from_secs(60);
    while world.now < end && turns < 10_000 {
        turn_server(&mut world);
        turns += 1;
        world.now = world.server.poll_at().unwrap_or(end).max(world.now + Duration::from_micros(1));
    }
    assert!(turns < 200, "it turned {turns} times");
    assert!(ends.iter().all(|(_, server)| drain(server).is_err()), "the time is up");
}

/// A little room each time: nobody gets all of it.
#[test]
fn room_goes_round() {
    let (mut world, ends) = blocked(40, 0);
    for (_, server) in &ends {
        fill(server, &pattern(60_000));
    }
    let mut least = 0;
    for _ in 0..200 {
        world.back.set_room(Some(2));
        world.pass(Duration::from_micros(500));
        least = ends.iter().map(|(client, _)| client.statistics().bytes_received).min().unwrap();
        if least > 0 {
            break;
        }
    }
    assert!(least > 0, "somebody got nothing");
}

/// Three full segments: a part of one would wait for the acknowledgement of these.
const SEGMENTS: usize = 3 * 1_448;
