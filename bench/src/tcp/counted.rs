//! What `instructions` counts of the endpoint: the turns of a stack, for each segment.

use super::lane::Lane;
use super::lineup::{Contender, Kind, Race};
use super::rxo::Variant;

/// One count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) name: &'static str,
    kind: Kind,
    connections: u16,
    contender: Contender,
}

impl Counted {
    pub(crate) const ALL: [Self; 11] = [
        Self::receive("tcp-receive", Variant::Offload),
        Self::receive("tcp-receive-aggregation", Variant::Aggregation),
        Self::receive("tcp-receive-limit-1", Variant::LimitOne),
        Self::receive("tcp-receive-original", Variant::Original),
        Self { connections: 400, ..Self::receive("tcp-receive-400", Variant::Offload) },
        Self { connections: 400, ..Self::receive("tcp-receive-400-original", Variant::Original) },
        Self { contender: Contender::Host, ..Self::receive("host-receive", Variant::Offload) },
        Self {
            contender: Contender::Host,
            kind: Kind::EndToEnd,
            ..Self::receive("host-send", Variant::Offload)
        },
        Self {
            contender: Contender::Smoltcp,
            ..Self::receive("tcp-receive-smoltcp", Variant::Original)
        },
        Self { kind: Kind::EndToEnd, ..Self::receive("tcp-send", Variant::Offload) },
        Self { kind: Kind::EndToEnd, ..Self::receive("tcp-send-original", Variant::Original) },
    ];

    const fn receive(name: &'static str, variant: Variant) -> Self {
        let contender = Contender::Rxo(variant);
        Self { name, kind: Kind::Receive, connections: 1, contender }
    }

    /// Segments read before counting begins: the windows are as large as they become.
    const WARM: u64 = 8_192;
    /// Segments of a pass.
    const PASS: u64 = 4_096;

    /// Has `passes` passes run their turns inside `count`; says how many segments they were. Of two
    /// stacks only the one that sends counts.
    pub(crate) fn run(self, passes: u32, mut count: impl FnMut(&mut dyn FnMut())) -> usize {
        let race = Race {
            kind: self.kind,
            checksums: false,
            timestamps: true,
            connections: self.connections,
            contenders: &[],
        };
        let mut lane = Lane::new(&race, self.contender);
        let segment = lane.segment_bytes() as u64;
        lane.read(Self::WARM * segment, &mut |stack, now| stack.turn(now));
        let bytes = lane.read(Self::PASS * segment * u64::from(passes), &mut |stack, now| {
            // Who has read something is the one that reads.
            if self.kind == Kind::EndToEnd && stack.read_bytes() > 0 {
                stack.turn(now);
            } else {
                count(&mut || stack.turn(now));
            }
        });
        (bytes / segment) as usize
    }
}
