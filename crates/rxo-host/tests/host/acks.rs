//! The ACKs that a host sends: their number, and the use of templates.

use std::sync::atomic::{AtomicU64, Ordering};

use rxo_ack::expand_packed;
use rxo_device::MemoryOptions;
use rxo_frame::{Frame, GsoKind, LinkKind};
use rxo_host::{Stage, StageTimer};
use rxo_tcp::AckPolicy;

use crate::world::{World, drain, fill, options, pattern};

/// The support of the server's device for ACK templates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Device {
    /// The device takes ACKs one by one.
    Plain,
    /// The device expands templates.
    Expands,
    /// The device claims to expand templates, but refuses them.
    Refuses,
}

/// Returns the packets on the wire that the server sends while it receives 200 kB and acknowledges every
/// second segment.
fn acks_of(change: impl Fn(&mut rxo_host::HostConfig)) -> Vec<Vec<u8>> {
    acks_behind(Device::Plain, change).acks
}

/// The packets that a server sent.
struct Sent {
    /// The bytes of the packets on the wire.
    acks: Vec<Vec<u8>>,
    /// Number of these ACKs that the server passed to the device in templates.
    handed_over: usize,
    /// The time of the server's rounds in [`Stage::Expand`], in nanoseconds.
    expanding_ns: u64,
}

/// Returns the packets of [`acks_of`], for a server with the given device.
fn acks_behind(device: Device, change: impl Fn(&mut rxo_host::HostConfig)) -> Sent {
    let expands_acks = device != Device::Plain;
    let change = |config: &mut rxo_host::HostConfig| {
        config.tcp.acks = AckPolicy::EverySecondSegment;
        change(config);
    };
    let mut world = World::with(MemoryOptions { gso_bytes: 0, expands_acks, ..options() }, change);
    let mut handed_over = 0;
    if device == Device::Refuses {
        world.back.refuse_aggregates();
    }
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(200_000);
    let (mut sent, mut read, mut acks) = (0, 0, Vec::new());
    for _ in 0..10_000 {
        if read == data.len() {
            let expanding_ns = world.server.counters().stages.ns(Stage::Expand);
            return Sent { acks, handed_over, expanding_ns };
        }
        sent += fill(&stream, &data[sent..]);
        world.client.turn(world.now).unwrap();
        world.server.turn(world.now).unwrap();
        read += drain(&accepted).unwrap().0.len();
        world.server.turn(world.now).unwrap();
        let answers = world.back.take_all();
        for answer in answers {
            let checksum = answer.offload.checksum;
            let packet = Frame { checksum, ..Frame::new(&answer.bytes[..], world.now) };
            let mut give = |frame: Frame<&[u8]>| {
                world.back.push(&frame);
                acks.push(frame.bytes.to_vec());
            };
            match answer.offload.gso {
                None => give(packet),
                Some(gso) => {
                    assert_eq!(gso.kind, GsoKind::AckTemplate);
                    let count = expand_packed(packet, LinkKind::RawIp, &mut give).unwrap();
                    assert_eq!(count, answer.frames);
                    handed_over += count;
                }
            }
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
fn a_device_that_expands_templates_sends_the_same() {
    let one_by_one = acks_of(|config| config.ack_templates = false);
    let Sent { acks, handed_over, .. } = acks_behind(Device::Expands, |_| {});
    assert!(acks == one_by_one);
    assert!(handed_over > 50, "{handed_over} in templates");
    let Sent { acks, handed_over, .. } = acks_behind(Device::Refuses, |_| {});
    assert!(acks == one_by_one && handed_over == 0, "{handed_over} in templates");
    let handed_over =
        acks_behind(Device::Expands, |config| config.ack_templates = false).handed_over;
    assert_eq!(handed_over, 0);
}

/// A clock that advances by more each time it is read, so that every stage takes measurable time.
fn slowing() -> u64 {
    static READ: AtomicU64 = AtomicU64::new(0);
    READ.fetch_add(1, Ordering::Relaxed).pow(2)
}

/// A device that expands templates has a stage of its own, because the driver expands them, not the stack
/// (Menon 2008, section 5).
#[test]
fn expansion_has_a_stage_of_its_own_where_the_host_does_it() {
    let expanding_ns = |device, ack_templates| {
        let timer = StageTimer { clock: slowing, every_turns: 1 };
        let change = |config: &mut rxo_host::HostConfig| {
            (config.stage_timer, config.ack_templates) = (Some(timer), ack_templates);
        };
        acks_behind(device, change).expanding_ns
    };
    assert!(expanding_ns(Device::Plain, true) > 0);
    assert_eq!(expanding_ns(Device::Plain, false), 0, "each is built by itself");
    assert_eq!(expanding_ns(Device::Expands, true), 0, "the device does it");
}

#[test]
fn stretch_acknowledgements_are_fewer() {
    let many = acks_of(|_| {}).len();
    let few = acks_of(|config| config.tcp.acks = AckPolicy::OneForATurn).len();
    assert!(few * 3 < many, "{few} and {many}");
}

/// A batch causes as many ACKs as its segments would one by one (Menon 2008, section 3.4).
#[test]
fn a_full_turn_is_acknowledged_as_each_second_segment_would_be() {
    let wide = MemoryOptions { gso_bytes: 0, most_packets: 1 << 16, ..options() };
    let mut world = World::with(wide, |config| {
        config.tcp.acks = AckPolicy::EverySecondSegment;
    });
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(16 << 20);
    let (mut sent, mut read, mut acks, mut segments, mut most) = (0, 0, 0, 0, 0);
    while read < data.len() {
        sent += fill(&stream, &data[sent..]);
        segments += world.client.turn(world.now).unwrap().sent;
        let turn = world.server.turn(world.now).unwrap();
        most = most.max(turn.frames);
        acks += turn.sent;
        read += drain(&accepted).unwrap().0.len();
        world.now = world.now + std::time::Duration::from_micros(50);
    }
    assert_eq!(most, 256, "a full turn");
    // Some window updates are not answers to a segment.
    assert!((segments / 2..segments * 11 / 20).contains(&acks), "{acks} for {segments} segments");
}
