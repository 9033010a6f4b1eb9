//! ACKs in every form that a template supports, each a [`Packet`] that can build its bytes.

use proptest::prelude::*;
use proptest::sample::select;
use rxo_ack::AckNumbers;
use rxo_frame::LinkKind;
use rxo_testkit::{Packet, seg};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The properties that all ACKs of one template share.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) v6: bool,
    pub(crate) tags: usize,
    pub(crate) raw: bool,
    pub(crate) has_timestamp: bool,
    pub(crate) padded: bool,
    pub(crate) partial: bool,
    pub(crate) option_words: usize,
    pub(crate) flow: u32,
    pub(crate) traffic_class: u8,
    pub(crate) flags: u16,
    pub(crate) id: u16,
}

impl Kind {
    pub(crate) const PLAIN: Self = Self {
        v6: false,
        tags: 0,
        raw: false,
        has_timestamp: true,
        padded: false,
        partial: false,
        option_words: 0,
        flow: 1,
        traffic_class: 0,
        flags: 0x10,
        id: 7,
    };

    pub(crate) fn link(&self) -> LinkKind {
        if self.raw { LinkKind::RawIp } else { LinkKind::Ethernet }
    }

    /// Builds the ACK with `numbers` and the identification `id`.
    pub(crate) fn packet(&self, numbers: AckNumbers, id: u16) -> Packet {
        let AckNumbers { ack, window, timestamp } = numbers;
        let plain = seg().pure_ack().flow(self.flow).ack(ack.0).window(window).id(id);
        let mut packet = plain.tos(self.traffic_class).flags(self.flags);
        packet = if self.v6 {
            packet.v6()
        } else {
            packet.ip_options(&[1].repeat(self.option_words * 4))
        };
        for tag in 0..self.tags {
            packet = packet.vlan(tag as u16 + 100);
        }
        packet = if self.raw { packet.raw_ip() } else { packet };
        packet = if self.padded { packet.padded_with(0xa5) } else { packet };
        packet =
            if self.has_timestamp { packet.ts(timestamp.value, timestamp.echo) } else { packet };
        // This comes last, because it needs the offset of the TCP header.
        if self.partial { packet.partial() } else { packet }
    }
}

prop_compose! {
    pub(crate) fn kinds()(
        (v6, raw, has_timestamp, padded, partial) in any::<(bool, bool, bool, bool, bool)>(),
        tags in 0..3_usize,
        option_words in select(vec![0, 0, 1, 2]),
        flow in 0..1_000_u32,
        (traffic_class, id) in any::<(u8, u16)>(),
        flags in select(vec![0x10, 0x50, 0x90, 0x110]),
    ) -> Kind {
        let tags = if raw { 0 } else { tags };
        Kind {
            v6, tags, raw, has_timestamp, padded, partial, option_words, flow, traffic_class, flags, id,
        }
    }
}

/// Generates any value, more often one for which sums reach 0x0000 or 0xffff.
fn longs() -> impl Strategy<Value = u32> {
    prop_oneof![select(vec![0, 1, 0xffff, 0x1_0000, 0xffff_0000, u32::MAX]), any::<u32>()]
}

prop_compose! {
    pub(crate) fn numbers()(
        (ack, value, echo) in (longs(), longs(), longs()),
        window in prop_oneof![select(vec![0, 1, 0xfffe, 0xffff]), any::<u16>()],
    ) -> AckNumbers {
        AckNumbers { ack: SeqNumber(ack), window, timestamp: Timestamp { value, echo } }
    }
}
