//! The position of the IP packet in a record, by link type.

use rxo_capture::{Direction, LinkType, Network, Record, SharedBytes};
use rxo_frame::LinkKind;

fn network(link: LinkType, header: &[u8]) -> Option<Network> {
    let packet = SharedBytes::from([header, &[0x45, 0, 1, 2]].concat());
    link.network(&packet)
}

/// Returns the number of bytes before the IP packet; `None` if there is no IP packet.
#[track_caller]
fn before(link: LinkType, header: &[u8]) -> Option<usize> {
    let network = network(link, header)?;
    assert_eq!(network.link, LinkKind::RawIp);
    assert_eq!(network.packet.as_ref(), [0x45, 0, 1, 2]);
    assert!(network.vlan.is_none());
    Some(network.header_bytes)
}

#[test]
fn ethernet_is_given_as_it_is() {
    let given = network(LinkType::ETHERNET, &[0; 14]).unwrap();
    assert_eq!((given.link, given.header_bytes), (LinkKind::Ethernet, 0));
    assert_eq!(given.packet.as_ref().len(), 18);
}

#[test]
fn raw_packets_have_nothing_before_them() {
    for link in [LinkType::RAW, LinkType::IPV4, LinkType::IPV6, LinkType(12), LinkType(14)] {
        assert_eq!(before(link, &[]), Some(0));
        assert!(link.is_known());
    }
}

#[test]
fn loopback_families_are_read_in_both_orders() {
    for family in [2, 10, 24, 28, 30] {
        assert_eq!(before(LinkType::NULL, &[family, 0, 0, 0]), Some(4));
        assert_eq!(before(LinkType::NULL, &[0, 0, 0, family]), Some(4));
        assert_eq!(before(LinkType::LOOP, &[0, 0, 0, family]), Some(4));
        assert_eq!(before(LinkType::LOOP, &[family, 0, 0, 0]), None);
    }
    assert_eq!(before(LinkType::NULL, &[7, 0, 0, 0]), None, "OSI");
    assert!(LinkType::NULL.network(&SharedBytes::from(vec![2, 0, 0])).is_none());
}

fn cooked(packet_type: u8, protocol: [u8; 2]) -> Vec<u8> {
    let mut header = vec![0; 16];
    header[1] = packet_type;
    header[14..].copy_from_slice(&protocol);
    header
}

fn cooked_v2(packet_type: u8, protocol: [u8; 2]) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[10] = packet_type;
    header[..2].copy_from_slice(&protocol);
    header
}

#[test]
fn in_cooked_frames_the_protocol_decides() {
    for ip in [[0x08, 0], [0x86, 0xdd]] {
        assert_eq!(before(LinkType::LINUX_SLL, &cooked(0, ip)), Some(16));
        assert_eq!(before(LinkType::LINUX_SLL2, &cooked_v2(0, ip)), Some(20));
    }
    for other in [[0x08, 0x06], [0, 0], [0, 4]] {
        assert_eq!(before(LinkType::LINUX_SLL, &cooked(0, other)), None);
        assert_eq!(before(LinkType::LINUX_SLL2, &cooked_v2(0, other)), None);
    }
    for short in 0..16 {
        assert!(LinkType::LINUX_SLL.network(&SharedBytes::from(vec![8; short])).is_none());
    }
}

#[test]
fn one_tag_of_a_cooked_frame_is_taken_out_and_two_are_left_alone() {
    let v1 = (LinkType::LINUX_SLL, cooked as fn(u8, [u8; 2]) -> Vec<u8>);
    for (link, cooked) in [v1, (LinkType::LINUX_SLL2, cooked_v2)] {
        for tpid in [[0x81, 0], [0x88, 0xa8]] {
            let header = cooked(0, tpid);
            let given = network(link, &[&header[..], &[0x20, 0x05, 0x08, 0]].concat()).unwrap();
            let vlan = given.vlan.unwrap();
            assert_eq!((vlan.tpid.get(), vlan.tci), (u16::from_be_bytes(tpid), 0x2005));
            assert_eq!(given.packet.as_ref(), [0x45, 0, 1, 2]);
            assert_eq!(given.header_bytes, header.len() + 4);
            assert!(network(link, &[&header[..], &[0, 5, 0x81, 0, 0, 6, 8, 0]].concat()).is_none());
            assert!(network(link, &[&header[..], &[0, 5, 8, 6]].concat()).is_none());
        }
    }
}

#[test]
fn other_link_types_hold_nothing_for_the_engine() {
    assert!(network(LinkType(105), &[]).is_none(), "802.11");
    assert!(!LinkType(105).is_known() && LinkType::LINUX_SLL2.is_known());
}

#[test]
fn cooked_headers_say_which_way_a_packet_went() {
    let went = |link: LinkType, bytes: Vec<u8>| {
        Record { bytes: SharedBytes::from(bytes), ..Record::default() }.direction(link)
    };
    for (packet_type, direction) in [(0, Direction::In), (3, Direction::In), (4, Direction::Out)] {
        assert_eq!(went(LinkType::LINUX_SLL, cooked(packet_type, [8, 0])), Some(direction));
        assert_eq!(went(LinkType::LINUX_SLL2, cooked_v2(packet_type, [8, 0])), Some(direction));
    }
    assert_eq!(went(LinkType::ETHERNET, vec![4; 60]), None);
}
