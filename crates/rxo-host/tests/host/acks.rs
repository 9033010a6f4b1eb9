//! Which acknowledgements leave, and how.

use rxo_device::MemoryOptions;
use rxo_frame::Frame;
use rxo_tcp::AckPolicy;

use crate::world::{World, drain, fill, options, pattern};

/// The packets that the server sends while it receives 200 kB, and the bytes of them.
fn acks_of(change: impl Fn(&mut rxo_host::HostConfig)) -> Vec<Vec<u8>> {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, change);
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(200_000);
    let (mut sent, mut read, mut acks) = (0, 0, Vec::new());
    for _ in 0..10_000 {
        if read == data.len() {
            return acks;
        }
        sent += fill(&stream, &data[sent..]);
        world.client.turn(world.now).unwrap();
        world.server.turn(world.now).unwrap();
        read += drain(&accepted).unwrap().0.len();
        world.server.turn(world.now).unwrap();
        let answers = world.back.take_all();
        for answer in answers {
            let checksum = answer.offload.checksum;
            world.back.push(&Frame { checksum, ..Frame::new(&answer.bytes, world.now) });
            acks.push(answer.bytes);
        }
        world.now = world.now + std::time::Duration::from_micros(50);
    }
    panic!("{read} of {} bytes arrived", data.len())
}

#[test]
fn a_template_is_the_same_as_acknowledgements_built_one_by_one() {
    let with = acks_of(|config| config.ack_templates = true);
    let without = acks_of(|config| config.ack_templates = false);
    assert!(with.len() > 50, "{} acknowledgements", with.len());
    assert!(with == without);
}

#[test]
fn stretch_acknowledgements_are_fewer() {
    let many = acks_of(|_| {}).len();
    let few = acks_of(|config| config.tcp.acks = AckPolicy::OneForAnAggregate).len();
    assert!(few * 3 < many, "{few} and {many}");
}
