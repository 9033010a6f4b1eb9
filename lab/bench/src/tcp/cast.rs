//! Measures the cost of an ACK for the sender of a group, in the receiver's connection and in the aggregate
//! state.
//!
//! Receivers are modelled: each acknowledges one of sixteen segments, in turn, as soon as the group has sent
//! them. The count covers the work that an ACK causes, but not the group's sending, which is the same for any
//! number of receivers.

use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{
    Arrival, Config, Connection, Control, Ecn, Group, GroupConfig, GroupSeed, Late, MemberId,
    Repairs, Segment, SegmentOptions, Slow,
};
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

/// A counted case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CastCase {
    pub(crate) name: &'static str,
    receivers: u32,
}

impl CastCase {
    pub(crate) const ALL: [Self; 4] = [
        Self { name: "cast-ack-8", receivers: 8 },
        Self { name: "cast-ack-88", receivers: 88 },
        Self { name: "cast-ack-168", receivers: 168 },
        Self { name: "cast-ack-1000", receivers: 1_000 },
    ];

    /// Runs `passes` passes inside `count`. Returns the number of ACKs.
    pub(crate) fn run(self, passes: u32, mut count: impl FnMut(&mut dyn FnMut())) -> usize {
        let mut scene = Scene::open(self.receivers);
        for _ in 0..WARM_ROUNDS {
            scene.round(&mut |acks| acks());
        }
        (0..passes * ROUNDS).map(|_| scene.round(&mut count)).sum()
    }
}

/// A sender, with the state of its receivers.
struct Scene {
    group: Group,
    receivers: Vec<(MemberId, Connection<Vec<u8>>)>,
    text: SharedBytes,
    now: Instant,
    /// Sequence number that all receivers have acknowledged; the next field is the one up to which the group
    /// has sent.
    acked: SeqNumber,
    sent: SeqNumber,
}

impl Scene {
    fn open(receivers: u32) -> Self {
        let group = Group::new(GroupConfig {
            seed: GroupSeed { iss: ISS, timestamp_offset: 0 },
            buffer_bytes: 4 << 20,
            largest_segment_bytes: SEGMENT_BYTES,
            large_send_bytes: 64_000,
            most_receivers: receivers as usize,
            slow: Slow::Eject(Duration::from_secs(10)),
            late: Late::Refuse,
            late_time: None,
            repairs: Repairs::Group { least: 2 },
            control: Control::Paper,
        });
        let mut scene = Self {
            group,
            receivers: Vec::new(),
            text: vec![7; 1 << 20].into(),
            now: Instant::from_micros(1_000_000),
            acked: ISS + 1,
            sent: ISS + 1,
        };
        (0..receivers).for_each(|number| scene.join(number));
        scene.group.start();
        scene.send();
        scene
    }

    fn join(&mut self, number: u32) {
        let pair = FlowKey::v4(0x0a00_0001, 0x0a01_0000 + number, 7_000 << 16 | 40_000, 0);
        let config = Config { ecn: false, nagle: false, ..Config::default() };
        let secret = rxo_tcp::Secret([u64::from(number), 1]);
        let mut tcp = Connection::open_passive(config, pair, secret).expect("valid settings");
        tcp.join_group(self.group.seed(), self.group.config().buffer_bytes);
        let options = SegmentOptions {
            maximum_segment_size: Some(1_460),
            window_scale: Some(7),
            is_sack_permitted: true,
            timestamp: Some(Timestamp::default()),
            ..SegmentOptions::default()
        };
        let syn = Segment {
            seq: PEER_ISS,
            ack: SeqNumber(0),
            flags: TcpFlags::SYN,
            window: u16::MAX,
            options,
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: self.now,
        };
        tcp.on_arrival(self.now, syn.into());
        while tcp.poll_transmit(self.now).is_some() {}
        tcp.on_arrival(self.now, Arrival::acks([ack(ISS + 1, self.now)]));
        let id = self.group.join(&mut tcp, self.now).expect("a receiver that may join");
        self.receivers.push((id, tcp));
    }

    /// Sends as much to the group as permitted.
    fn send(&mut self) {
        self.now = self.now + Duration::from_micros(100);
        while self.group.room() > 0 {
            self.group.write(&mut self.text.clone());
        }
        while let Some(transmit) = self.group.poll_transmit(self.now) {
            self.sent = transmit.seq + transmit.payload_bytes() as u32;
        }
    }

    /// Makes each receiver acknowledge sixteen more segments, or all that were sent. Returns the number of
    /// ACKs.
    fn round(&mut self, count: &mut dyn FnMut(&mut dyn FnMut())) -> usize {
        let step = ((self.sent - self.acked) as u32).min(SEGMENTS_FOR_AN_ACK * SEGMENT_BYTES);
        self.acked = self.acked + step;
        self.now = self.now + Duration::from_micros(100);
        let Self { group, receivers, acked, now, .. } = self;
        count(&mut || {
            for (id, tcp) in receivers.iter_mut() {
                group.before(*id, tcp, *now);
                tcp.on_arrival(*now, Arrival::acks([ack(*acked, *now)]));
                while tcp.poll_transmit(*now).is_some() {}
                group.after(*id, tcp, *now);
            }
        });
        self.send();
        self.receivers.len()
    }
}

/// Returns a pure ACK of everything before `number`.
fn ack(number: SeqNumber, now: Instant) -> AckRecord {
    AckRecord {
        arrived_at_ns: now.as_nanos(),
        seq: PEER_ISS + 1,
        ack: number,
        ts_value: 1,
        ts_echo: 0,
        // 256 KiB after scaling.
        window: 2_048,
        flags: TcpFlags::ACK,
        ecn: 0,
        has_timestamp: true,
    }
}

const ISS: SeqNumber = SeqNumber(1_000);
const PEER_ISS: SeqNumber = SeqNumber(5_000);
const SEGMENT_BYTES: u32 = 1_448;
/// Segments per ACK, as with `rxo cast receive`.
const SEGMENTS_FOR_AN_ACK: u32 = 16;
/// Uncounted rounds, until the windows have reached their full size.
const WARM_ROUNDS: usize = 200;
/// Rounds in a pass.
const ROUNDS: u32 = 64;
