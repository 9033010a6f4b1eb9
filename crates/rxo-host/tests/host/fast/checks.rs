//! Each check fails for its own reason, and a rejected frame takes the slow path.

use std::time::Duration;

use rxo_coalesce::{Hold, Policy, PureAckRule};
use rxo_device::MemoryOptions;
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};
use rxo_host::{FallbackReason, FastCounters, FastModules, HostConfig, TcpStream};

use crate::world::{World, drain, fill, options, pattern};

/// A sender with the fast path on, and an ACK of its peer that has not arrived yet.
struct Scene {
    world: World,
    stream: TcpStream,
    accepted: TcpStream,
    ack: Vec<u8>,
}

const fn ip_at(link: LinkKind) -> usize {
    match link {
        LinkKind::Ethernet => 14,
        LinkKind::RawIp => 0,
    }
}

impl Scene {
    fn new(link: LinkKind, change: impl Fn(&mut HostConfig)) -> Self {
        let options = MemoryOptions { link, gso_bytes: 0, ..options() };
        let mut world = World::with(options, |config| {
            config.fast_path.modules = FastModules::PURE_ACK;
            change(config);
        });
        let listener = world.listen(4);
        let (stream, accepted) = world.connected(&listener);
        // Two full segments, which are acknowledged at once.
        fill(&stream, &pattern(2 * stream.statistics().mss as usize));
        world.client.turn(world.now).unwrap();
        world.server.turn(world.now).unwrap();
        let sent = world.back.take_all();
        let ack = sent.last().expect("an acknowledgement").bytes.clone();
        Self { world, stream, accepted, ack }
    }

    /// The increase of the counters after `frames` arrived in one batch.
    fn after(&mut self, frames: &[Vec<u8>], checksum: ChecksumStatus) -> FastCounters {
        let before = self.world.client.counters().fast;
        let now: Instant = self.world.now;
        for bytes in frames {
            self.world.back.push(&Frame { checksum, ..Frame::new(&bytes[..], now) });
        }
        self.world.client.turn(now).unwrap();
        let mut after = self.world.client.counters().fast;
        after.consumed -= before.consumed;
        after.duplicates -= before.duplicates;
        after.calls -= before.calls;
        after.fallbacks.iter_mut().zip(before.fallbacks).for_each(|(now, was)| *now -= was);
        after
    }

    fn unacknowledged(&self) -> i32 {
        let seen = self.stream.statistics();
        seen.snd_nxt - seen.snd_una
    }
}

/// Checks that an ACK modified by `change` is rejected for `reason`.
fn refused(reason: FallbackReason, link: LinkKind, change: impl Fn(&mut Vec<u8>)) {
    let mut scene = Scene::new(link, |_| {});
    let mut ack = scene.ack.clone();
    change(&mut ack);
    let counters = scene.after(&[ack], ChecksumStatus::Verified);
    assert_eq!(counters.consumed, 0, "{reason:?}");
    assert_eq!(
        (counters.fallback(reason), counters.fallbacks()),
        (1, 1),
        "{reason:?}: {counters:?}"
    );
}

/// Corrects the checksum of the IPv4 header.
fn fix_ip(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = rxo_wire::checksum::ipv4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[test]
fn an_acknowledgement_is_consumed_on_every_link() {
    for link in [LinkKind::RawIp, LinkKind::Ethernet] {
        for timestamps in [false, true] {
            let mut scene = Scene::new(link, |config| config.tcp.timestamps = timestamps);
            assert!(scene.unacknowledged() > 0);
            let ack = scene.ack.clone();
            let counters = scene.after(&[ack], ChecksumStatus::Verified);
            assert_eq!((counters.consumed, counters.fallbacks()), (1, 0), "{counters:?}");
            assert_eq!(scene.unacknowledged(), 0);
        }
    }
}

#[test]
fn a_padded_frame_is_consumed() {
    let mut scene = Scene::new(LinkKind::Ethernet, |config| config.tcp.timestamps = false);
    let mut ack = scene.ack.clone();
    assert_eq!(ack.len(), 54);
    ack.resize(60, 0);
    assert_eq!(scene.after(&[ack], ChecksumStatus::Verified).consumed, 1);
}

#[test]
fn each_check_has_its_reason() {
    use FallbackReason as Reason;
    let raw = LinkKind::RawIp;
    refused(Reason::Length, raw, |ack| ack.extend([0; 4]));
    refused(Reason::Length, LinkKind::Ethernet, |ack| ack[5] ^= 1);
    refused(Reason::Ip, raw, |ack| ack[8] ^= 1);
    refused(Reason::Ip, raw, |ack| {
        ack[6] = 0x20;
        fix_ip(ack);
    });
    refused(Reason::Ip, raw, |ack| {
        ack[9] = 17;
        fix_ip(ack);
    });
    for flags in [0x11, 0x12, 0x14, 0x18, 0x50, 0x90, 0x02] {
        refused(Reason::Flags, raw, |ack| ack[33] = flags);
    }
    refused(Reason::Flags, raw, |ack| ack[32] |= 1);
    refused(Reason::Options, raw, |ack| ack[40..52].copy_from_slice(&[1; 12]));
    refused(Reason::NoConnection, raw, |ack| ack[20] ^= 1);
}

#[test]
fn a_wrong_checksum_falls_back_and_is_refused_there() {
    for link in [LinkKind::RawIp, LinkKind::Ethernet] {
        let mut scene = Scene::new(link, |_| {});
        let mut ack = scene.ack.clone();
        ack[ip_at(link) + 20 + 14] ^= 1;
        let counters = scene.after(&[ack], ChecksumStatus::Unknown);
        assert_eq!(counters.fallback(FallbackReason::Checksum), 1, "{counters:?}");
        assert_eq!(scene.world.client.counters().link.refused.bad_checksum, 1);
        assert!(scene.unacknowledged() > 0);
    }
}

#[test]
fn a_right_checksum_that_nobody_verified_is_verified() {
    let mut scene = Scene::new(LinkKind::RawIp, |_| {});
    let mut ack = scene.ack.clone();
    // The link leaves the checksum partial.
    ack[36..38].fill(0);
    let parsed = rxo_wire::parse_ip(&ack).unwrap();
    let sum = rxo_wire::checksum::pseudo_header(&parsed.key, 6, 32);
    let summed = sum + rxo_wire::checksum::Summer::detect().sum(&ack[20..]);
    ack[36..38].copy_from_slice(&summed.checksum().to_be_bytes());
    assert_eq!(scene.after(&[ack], ChecksumStatus::Unknown).consumed, 1);
}

#[test]
fn an_ack_does_not_overtake_a_segment_of_its_flow() {
    let mut scene = Scene::new(LinkKind::RawIp, |_| {});
    let ack = scene.ack.clone();
    let mut odd = ack.clone();
    odd[33] = 0x18;
    let counters = scene.after(&[odd, ack.clone(), ack.clone()], ChecksumStatus::Verified);
    assert_eq!(counters.consumed, 0);
    assert_eq!(counters.fallback(FallbackReason::Order), 2);
    let counters = scene.after(&[ack.clone(), ack], ChecksumStatus::Verified);
    assert_eq!(
        (counters.consumed, counters.calls, counters.duplicates),
        (2, 1, 1),
        "the next batch"
    );
}

/// The engine holds data of the peer beyond its batch. An ACK in the next batch falls back, and makes the
/// engine deliver that data first; the ACK after it is consumed again.
#[test]
fn an_ack_does_not_overtake_what_the_engine_holds() {
    for hold in
        [Hold::EveryNthPoll(3), Hold::Within(Duration::from_micros(100)), Hold::EveryNPackets(5)]
    {
        let mut scene = Scene::new(LinkKind::RawIp, |_| {});
        let policy = scene.world.client.policy();
        let held = Policy { hold, pure_acks: PureAckRule::Bypass, ..policy };
        scene.world.client.set_policy(held).unwrap();
        let mss = scene.accepted.statistics().mss as usize;
        let text = pattern(3 * mss);
        assert_eq!(fill(&scene.accepted, &text), text.len());
        scene.world.server.turn(scene.world.now).unwrap();
        let mut sent = scene.world.back.take_all();
        // The last segment has PSH, which would end the hold.
        assert_eq!((sent.len(), sent.pop().map(|last| last.bytes[33])), (3, Some(0x18)));
        let segments: Vec<_> = sent.into_iter().map(|sent| sent.bytes).collect();
        scene.after(&segments, ChecksumStatus::Verified);
        assert!(drain(&scene.stream).unwrap().0.is_empty(), "{hold:?}: it is held");
        let ack = [scene.ack.clone()];
        let counters = scene.after(&ack, ChecksumStatus::Verified);
        let order = counters.fallback(FallbackReason::Order);
        assert_eq!((counters.consumed, order), (0, 1), "{hold:?}");
        let read = drain(&scene.stream).unwrap().0;
        assert!(read == text[..2 * mss], "{hold:?}: {} bytes", read.len());
        assert_eq!(scene.after(&ack, ChecksumStatus::Verified).consumed, 1, "{hold:?}");
    }
}

#[test]
fn a_fragment_before_it_may_be_of_its_flow() {
    let mut scene = Scene::new(LinkKind::RawIp, |_| {});
    let ack = scene.ack.clone();
    let mut fragment = ack.clone();
    fragment[6] = 0x20;
    fix_ip(&mut fragment);
    let counters = scene.after(&[fragment, ack], ChecksumStatus::Verified);
    assert_eq!((counters.consumed, counters.fallback(FallbackReason::Order)), (0, 1));
}

#[test]
fn a_connection_that_opens_takes_its_acknowledgement_the_ordinary_way() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |config| {
        config.fast_path.modules = FastModules::PURE_ACK;
    });
    let listener = world.listen(4);
    let _pair = world.connected(&listener);
    let counters = world.server.counters().fast;
    assert_eq!(counters.consumed, 0);
    assert_eq!(counters.fallback(FallbackReason::NotSynchronized), 1, "{counters:?}");
}
