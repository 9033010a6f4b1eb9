//! Properties that hold for arbitrary bytes.

use proptest::prelude::*;
use rxo_wire::build::maximum_segment_size_option;
use rxo_wire::checksum::{Summer, verify_ip_header, verify_tcp, verify_transport};
use rxo_wire::tcp::{OptionLayout, Options};
use rxo_wire::{
    FlowKey, IpVersion, Offsets, Parsed, Plain, TcpFlags, Transport, Unparsed, class_and_length,
    parse, parse_ip, plain_v4, plain_v4_checksum, plain_v4_key, plain_v6, plain_v6_key,
};

use crate::packets::{Shape, any_shape};

/// Checks the promises of `Parsed` about its offsets, and that no function based on it panics.
fn check(frame: &[u8], result: Result<Parsed, Unparsed>) -> Result<(), TestCaseError> {
    let Ok(parsed) = result else { return Ok(()) };
    prop_assert!(parsed.at.network < parsed.at.transport);
    prop_assert!(parsed.at.transport <= parsed.at.payload);
    prop_assert!(parsed.at.payload <= parsed.at.end);
    prop_assert!(parsed.at.end as usize <= frame.len());
    prop_assert_eq!(parsed.payload_bytes(), parsed.at.end - parsed.at.payload);
    let has_header = matches!(parsed.transport, Transport::Tcp(_) | Transport::Udp(_));
    prop_assert_eq!(parsed.at.payload > parsed.at.transport, has_header);

    let packet_bytes = (parsed.at.end - parsed.at.network) as usize;
    let start = class_and_length(&frame[parsed.at.network as usize..]);
    prop_assert_eq!(start, Some((parsed.ip.traffic_class, packet_bytes)));

    prop_assert_eq!(verify_ip_header(parsed.at, frame), parsed.ip.checksum_ok);
    let is_right = verify_transport(&parsed, frame, Summer::detect());
    prop_assert_eq!(is_right, verify_transport(&parsed, frame, Summer::portable()));
    Ok(())
}

/// Checks that no arbitrary offset causes a panic.
fn check_elsewhere(frame: &[u8], [network, transport, payload, end]: [u32; 4]) {
    let at = Offsets { network, transport, payload, end };
    let _ = verify_ip_header(at, frame);
    let _ = verify_tcp(&FlowKey::NONE, at, frame, Summer::detect());
    let _ = FlowKey::read(frame, at);
}

/// Checks that `parse` reads the same fields whenever `plain` accepts a packet.
fn check_plain(
    packet: &[u8],
    read: Option<rxo_wire::Plain>,
    parsed: Result<Parsed, Unparsed>,
) -> Result<(), TestCaseError> {
    let Some(plain) = read else { return Ok(()) };
    let parsed = parsed.map_err(|_| TestCaseError::fail("plain, but not readable"))?;
    let Transport::Tcp(tcp) = parsed.transport else {
        return Err(TestCaseError::fail("plain, but not TCP"));
    };
    prop_assert_eq!(plain.key, parsed.key);
    prop_assert_eq!(plain.seq, tcp.seq);
    prop_assert_eq!(plain.header_bytes, parsed.at.payload);
    prop_assert_eq!(plain.payload_bytes, parsed.payload_bytes());
    prop_assert_eq!(tcp.flags, TcpFlags::ACK);
    prop_assert!(matches!(tcp.options, OptionLayout::None | OptionLayout::AlignedTimestamp));
    prop_assert!(!parsed.ip.has_options && !parsed.ip.reserved_bit);
    if parsed.ip.version == IpVersion::V4 {
        prop_assert_eq!(parsed.ip.checksum_ok, plain_v4_checksum(packet));
    }
    Ok(())
}

/// Checks that the functions that read only the key return the same key.
fn check_key(plain: Option<Plain>, key: Option<FlowKey>) -> Result<(), TestCaseError> {
    if let Some(plain) = plain {
        prop_assert_eq!(Some(plain.key), key);
    }
    Ok(())
}

fn check_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    check(bytes, parse(bytes))?;
    check(bytes, parse_ip(bytes))?;
    check_key(plain_v4(bytes, 0), plain_v4_key(bytes, 0))?;
    check_key(plain_v6(bytes, 0), plain_v6_key(bytes, 0))?;
    check_plain(bytes, plain_v4(bytes, 0), parse_ip(bytes))?;
    check_plain(bytes, plain_v6(bytes, 0), parse_ip(bytes))
}

/// Damage that makes length fields wrong, versions contradictory, or headers incomplete.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (index(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        index().prop_map(Damage::Cut),
        proptest::collection::vec(any::<u8>(), 1..64).prop_map(Damage::Append),
    ]
}

fn apply(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    // Damages only the first 100 bytes, which contain nearly everything that is parsed.
    let place = |at: &prop::sample::Index, length: usize| at.index(length.min(100));
    for damage in damages {
        match damage {
            Damage::Append(more) => bytes.extend(more),
            _ if bytes.is_empty() => {}
            Damage::Set(at, byte) => {
                let at = place(at, bytes.len());
                bytes[at] = *byte;
            }
            Damage::Flip(at, bit) => {
                let at = place(at, bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn noise_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_all(&bytes)?;
    }

    #[test]
    fn headers_may_be_said_to_be_anywhere(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        near: [u8; 4], far: [u32; 4],
    ) {
        check_elsewhere(&bytes, near.map(u32::from));
        check_elsewhere(&bytes, far);
    }

    #[test]
    fn noise_behind_a_right_type_is_read_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 16..200),
        (ethertype, first) in prop_oneof![Just((0x0800_u16, 0x45_u8)), Just((0x86dd, 0x60))],
    ) {
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        bytes[14] = first;
        check_all(&bytes)?;
    }

    #[test]
    fn damaged_packets_are_read_or_refused(
        shape in any_shape(),
        damages in proptest::collection::vec(damage(), 1..6),
    ) {
        check_all(&apply(shape.frame(), &damages))?;
        check_all(&apply(shape.packet(), &damages))?;
    }

    #[test]
    fn valid_packets_verify(shape in any_shape()) {
        let frame = shape.frame();
        let parsed = parse(&frame).map_err(|_| TestCaseError::fail("not readable"))?;
        prop_assert!(verify_transport(&parsed, &frame, Summer::detect()));
        check_all(&frame)?;
        check_all(&shape.packet())?;
    }

    #[test]
    fn plain_segments_are_told_as_plain(shape in any_shape(), has_timestamp in any::<bool>()) {
        let mut shape = Shape {
            is_udp: false,
            ip_options: vec![],
            extensions: vec![],
            tcp_options: vec![],
            flags: TcpFlags::ACK.bits(),
            ..shape
        };
        if has_timestamp {
            shape.tcp_options = vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        }
        let is_plain = |packet: &[u8]| [plain_v4(packet, 0), plain_v6(packet, 0)].iter().flatten().count();
        prop_assert_eq!(is_plain(&shape.packet()), 1);
        shape.tcp_options = maximum_segment_size_option(1460).to_vec();
        prop_assert_eq!(is_plain(&shape.packet()), 0);
    }

    #[test]
    fn options_of_noise_end(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let read: Vec<_> = Options::new(&bytes).collect();
        let errors = read.iter().filter(|option| option.is_err()).count();
        prop_assert!(errors <= 1);
        prop_assert!(errors == 0 || read.last().is_some_and(Result::is_err), "an error is the end");
        let used: usize = read.iter().flatten().map(|option| option.data.len() + 1).sum();
        prop_assert!(used <= bytes.len());
    }
}
