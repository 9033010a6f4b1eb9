//! Explicit congestion notification between the outer and the inner IP header (RFC 6040, normal mode).
//!
//! A congested router marks the outer header of a datagram. The mark must reach the receiver of the inner
//! packet; otherwise the sender is not informed about the congestion. The functions are pure, except that
//! [`decapsulate`] changes its argument.

use rxo::wire::checksum::update_word;
use rxo::wire::class_and_length;

/// The codepoints of the ECN field (RFC 3168, section 5).
const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const CE: u8 = 3;

/// Returns the ECN field of the IP packet `packet`. The outer header gets an equal field (RFC 6040, section
/// 4.1). Returns 0 if `packet` is not an IP packet.
pub(crate) fn of(packet: &[u8]) -> u8 {
    class_and_length(packet).map_or(NOT_ECT, |(class, _)| class & CE)
}

/// Computes the ECN field of the delivered packet from the fields of its `inner` and its `outer` header (RFC
/// 6040, figure 4). `None` if the packet must be dropped, because the outer header is marked and the inner
/// sender does not support ECN.
pub(crate) const fn combine(inner: u8, outer: u8) -> Option<u8> {
    match (inner & CE, outer & CE) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (_, CE) => Some(CE),
        (inner, ECT_1) if inner != CE => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

/// Writes the [combined](combine) ECN field into `packet`, which arrived in a datagram with the ECN field
/// `outer`. Updates the IPv4 header checksum. Returns `None`, without changing the packet, if it must be
/// dropped.
pub(crate) fn decapsulate(packet: &mut [u8], outer: u8) -> Option<()> {
    let inner = of(packet);
    let combined = combine(inner, outer)?;
    if combined == inner {
        return Some(());
    }
    let (first, old) = (packet[0], u16::from_be_bytes([packet[0], packet[1]]));
    if first >> 4 == 4 {
        packet[1] = packet[1] & !CE | combined;
        let new = u16::from_be_bytes([first, packet[1]]);
        let checksum = packet.get_mut(10..12)?;
        let updated = update_word(u16::from_be_bytes([checksum[0], checksum[1]]), old, new);
        checksum.copy_from_slice(&updated.to_be_bytes());
    } else {
        packet[1] = packet[1] & !(CE << 4) | combined << 4;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxo::wire::checksum::ipv4_header_checksum;

    use super::*;

    const ECT_0: u8 = 2;

    /// RFC 6040, figure 4: a row for each inner field, a column for each outer field, in the figure's order.
    #[test]
    fn all_sixteen_combinations_are_those_of_the_rfc() {
        const FIELDS: [u8; 4] = [NOT_ECT, ECT_0, ECT_1, CE];
        let rows = [
            [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None],
            [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)],
            [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)],
            [Some(CE), Some(CE), Some(CE), Some(CE)],
        ];
        for (inner, row) in FIELDS.into_iter().zip(rows) {
            for (outer, expected) in FIELDS.into_iter().zip(row) {
                assert_eq!(combine(inner, outer), expected, "inner {inner}, outer {outer}");
            }
        }
    }

    fn ipv4(class: u8, rest: [u8; 18]) -> [u8; 20] {
        let mut header = [0; 20];
        (header[0], header[1]) = (0x45, class);
        header[2..].copy_from_slice(&rest);
        let checksum = ipv4_header_checksum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    proptest! {
        #[test]
        fn ipv4_keeps_everything_else_and_its_checksum(class: u8, rest: [u8; 18], outer in 0_u8..4) {
            let before = ipv4(class, rest);
            let mut packet = before;
            match combine(class, outer) {
                None => {
                    prop_assert_eq!(decapsulate(&mut packet, outer), None);
                    prop_assert_eq!(packet, before);
                }
                Some(field) => {
                    prop_assert_eq!(decapsulate(&mut packet, outer), Some(()));
                    prop_assert_eq!(packet, ipv4(class & !CE | field, rest));
                }
            }
        }

        #[test]
        fn ipv6_keeps_everything_else(start: [u8; 4], outer in 0_u8..4) {
            let mut before = [0; 40];
            before[..4].copy_from_slice(&start);
            before[0] = 0x60 | start[0] & 0xf;
            let (mut packet, inner) = (before, of(&before));
            let done = decapsulate(&mut packet, outer);
            prop_assert_eq!(done.is_some(), combine(inner, outer).is_some());
            if let Some(field) = combine(inner, outer) {
                prop_assert_eq!(of(&packet), field);
            }
            packet[1] = packet[1] & !0x30 | before[1] & 0x30;
            prop_assert_eq!(packet, before);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..44), outer: u8) {
            let _any_answer = decapsulate(&mut bytes, outer);
        }
    }
}
