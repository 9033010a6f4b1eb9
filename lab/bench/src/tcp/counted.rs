//! The endpoint's turns that `instructions` counts, per segment.

use super::lane::Lane;
use super::lineup::{Contender, Kind, Name, Race};
use super::peer::RUN_SEGMENTS;
use super::rxo::Variant;
use super::stack::{BUFFER_BYTES, Reading};

/// A counted case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) name: &'static str,
    kind: Kind,
    connections: u16,
    reading: Reading,
    takes_large: bool,
    contender: Contender,
    /// `true` if the receiver of two stacks is counted instead of the sender.
    counts_receiver: bool,
}

impl Counted {
    pub(crate) const ALL: [Self; 29] = [
        Self::receive("tcp-receive", Variant::Offload),
        Self::receive("tcp-receive-aggregation", Variant::Aggregation),
        Self::receive("tcp-receive-limit-1", Variant::LimitOne),
        Self::receive("tcp-receive-original", Variant::Original),
        Self { connections: 400, ..Self::receive("tcp-receive-400", Variant::Offload) },
        Self { connections: 400, ..Self::receive("tcp-receive-400-original", Variant::Original) },
        Self { connections: 10_000, ..Self::receive("tcp-receive-10000", Variant::Offload) },
        Self {
            reading: Reading::InPlace,
            ..Self::receive("tcp-receive-in-place", Variant::Stretch)
        },
        Self::receive("tcp-receive-stretch", Variant::Stretch),
        Self::host("host-receive", Variant::Offload),
        Self { connections: 400, ..Self::host("host-receive-400", Variant::Offload) },
        Self { connections: 10_000, ..Self::host("host-receive-10000", Variant::Offload) },
        Self::host("host-receive-stretch", Variant::Stretch),
        Self { reading: Reading::InPlace, ..Self::host("host-receive-in-place", Variant::Stretch) },
        Self { kind: Kind::EndToEnd, ..Self::host("host-send", Variant::Offload) },
        Self { kind: Kind::EndToEnd, ..Self::host("host-send-lent", Variant::Lent) },
        Self {
            contender: Contender::Smoltcp,
            ..Self::receive("tcp-receive-smoltcp", Variant::Original)
        },
        Self { kind: Kind::EndToEnd, ..Self::receive("tcp-send", Variant::Offload) },
        Self { kind: Kind::EndToEnd, ..Self::receive("tcp-send-lent", Variant::Lent) },
        Self {
            kind: Kind::EndToEnd,
            takes_large: true,
            ..Self::receive("tcp-send-large", Variant::Offload)
        },
        Self { kind: Kind::EndToEnd, ..Self::receive("tcp-send-original", Variant::Original) },
        Self::curve("curve-send-1", Variant::Stretch, 1),
        Self::curve("curve-send-64", Variant::Stretch, 64),
        Self::curve("curve-send-400", Variant::Stretch, 400),
        Self::curve("curve-lent-1", Variant::Lent, 1),
        Self::curve("curve-lent-400", Variant::Lent, 400),
        Self { counts_receiver: true, ..Self::curve("curve-receive-1", Variant::Stretch, 1) },
        Self { counts_receiver: true, ..Self::curve("curve-receive-64", Variant::Stretch, 64) },
        Self { counts_receiver: true, ..Self::curve("curve-receive-400", Variant::Stretch, 400) },
    ];

    const fn receive(name: &'static str, variant: Variant) -> Self {
        let contender = Contender::Rxo(variant);
        let (kind, reading) = (Kind::Receive, Reading::Copied);
        let counts_receiver = false;
        Self { name, kind, connections: 1, reading, takes_large: false, contender, counts_receiver }
    }

    const fn host(name: &'static str, variant: Variant) -> Self {
        Self { contender: Contender::Host(variant), ..Self::receive(name, variant) }
    }

    /// The race `curve`: a host sends to a host on a link that says how much waits in its queue.
    const fn curve(name: &'static str, variant: Variant, connections: u16) -> Self {
        let contender = Contender::Queued(variant);
        Self { kind: Kind::EndToEnd, connections, contender, ..Self::receive(name, variant) }
    }

    /// Segments read before counting begins, so that the windows have reached their full size.
    const WARM: u64 = 8_192;
    /// Segments in a pass.
    const PASS: u64 = 4_096;

    /// Returns the segments with which each connection has sent its run once.
    fn lap(self) -> u64 {
        u64::from(self.connections) * RUN_SEGMENTS as u64
    }

    /// Returns the bytes read before counting begins. Many applications write much before anything is sent.
    fn warm_bytes(self, segment: u64) -> u64 {
        let written = match self.kind {
            Kind::EndToEnd => u64::from(self.connections) * BUFFER_BYTES as u64 * 3 / 2,
            Kind::Receive => 0,
        };
        written.max(Self::WARM.max(self.lap()) * segment)
    }

    /// Runs the turns of `passes` passes inside `count`. Returns the number of segments. Of two stacks only
    /// one is counted.
    pub(crate) fn run(self, passes: u32, mut count: impl FnMut(&mut dyn FnMut())) -> usize {
        let race = Race {
            name: Name::Receive,
            kind: self.kind,
            checksums: false,
            timestamps: true,
            connections: self.connections,
            reading: self.reading,
            takes_large: self.takes_large,
            contenders: &[],
        };
        let mut lane = Lane::new(&race, self.contender);
        let segment = lane.segment_bytes() as u64;
        lane.read(self.warm_bytes(segment), &mut |stack, now| stack.turn(now));
        let pass = Self::PASS.max(self.lap()) * segment;
        let bytes = lane.read(pass * u64::from(passes), &mut |stack, now| {
            // The stack that has read something is the receiver.
            if self.kind == Kind::EndToEnd && (stack.read_bytes() > 0) != self.counts_receiver {
                stack.turn(now);
            } else {
                count(&mut || stack.turn(now));
            }
        });
        (bytes / segment) as usize
    }
}
