//! Each rule of a guard, with a packet that it refuses and one that it lets pass.

use super::*;

const OWN: MacAddress = MacAddress([0x52, 0x54, 0, 0, 0, 2]);
const OTHER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 9];
const OWN_IP: [u8; 4] = [192, 0, 2, 7];
const OTHER_IP: [u8; 4] = [192, 0, 2, 1];
const OWN_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const OTHER_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The link-local address fe80::5054:ff:fe00:2, which follows from the Ethernet address.
const OWN_LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0, 0, 2];
const NOBODY: [u8; 16] = [0; 16];

fn framed(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&[0; 12][..], &ethertype.to_be_bytes(), packet].concat()
}

fn arp(mac: [u8; 6], sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    framed(0x806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &sender, &[0; 6], &target].concat())
}

fn v4(source: [u8; 4], protocol: u8, upper: &[u8]) -> Vec<u8> {
    let length = (20 + upper.len() as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    framed(0x800, &[&head[..], &source, &[192, 0, 2, 9], upper].concat())
}

fn v6(source: [u8; 16], next: u8, upper: &[u8]) -> Vec<u8> {
    let length = (upper.len() as u16).to_be_bytes();
    let head = [0x60, 0, 0, 0, length[0], length[1], next, 255];
    framed(0x86dd, &[&head[..], &source, &OTHER_V6, upper].concat())
}

fn udp(to: u16) -> [u8; 8] {
    let [high, low] = to.to_be_bytes();
    [0, 67, high, low, 0, 8, 0, 0]
}

/// Builds a neighbour message for `target` with one option.
fn neighbour(kind: u8, target: [u8; 16], option: u8, mac: [u8; 6]) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, &[option, 1], &mac].concat()
}

/// Returns the result of the guard for a frame of a device with its own addresses and no rights.
fn checked(frame: &[u8]) -> Result<(), DropReason> {
    let ips = vec![OWN_IP.into(), OWN_V6.into()];
    Guard { ips, ..Guard::default() }.check(Some(OWN), &Packet::read(frame))
}

const NEIGHBOUR: Result<(), DropReason> = Err(DropReason::ForeignNeighbour);
const IP: Result<(), DropReason> = Err(DropReason::ForeignIp);
const ROUTER: Result<(), DropReason> = Err(DropReason::ForeignRouter);
const DHCP: Result<(), DropReason> = Err(DropReason::ForeignDhcp);
const MALFORMED: Result<(), DropReason> = Err(DropReason::Malformed);

#[test]
fn arp_speaks_for_own_addresses_only() {
    let nobody = [0; 4];
    let rows = [
        (arp(OWN.0, OWN_IP, OTHER_IP), Ok(())),
        (arp(OWN.0, nobody, OWN_IP), Ok(())),
        (arp(OWN.0, OTHER_IP, OWN_IP), NEIGHBOUR),
        (arp(OTHER, OWN_IP, OTHER_IP), NEIGHBOUR),
        // A host that probes the same address would give it up.
        (arp(OWN.0, nobody, OTHER_IP), NEIGHBOUR),
        (arp(OWN.0, OWN_IP, OWN_IP), Ok(())),
        (arp(OWN.0, OWN_IP, OTHER_IP)[..41].to_vec(), MALFORMED),
    ];
    for (frame, expected) in rows {
        assert_eq!(checked(&frame), expected, "{frame:x?}");
    }
    // QEMU announces a guest with this frame; a reply would give its receiver an address.
    for (operation, expected) in [(3, Ok(())), (4, DHCP)] {
        let mut reverse = arp(OWN.0, nobody, nobody);
        (reverse[13], reverse[12], reverse[21]) = (0x35, 0x80, operation);
        assert_eq!(checked(&reverse), expected);
    }
}

#[test]
fn packets_come_from_own_addresses() {
    let nobody = [0; 4];
    let join = [0x16, 0, 0, 0, 239, 1, 1, 1];
    let rows = [
        (v4(OWN_IP, 6, &[]), Ok(())),
        (v4(OTHER_IP, 6, &[]), IP),
        (v4(nobody, 17, &udp(67)), Ok(())),
        (v4(nobody, 2, &join), Ok(())),
        (v4(nobody, 17, &udp(53)), IP),
        (v4(nobody, 6, &[]), IP),
        (v6(OWN_V6, 6, &[]), Ok(())),
        (v6(OWN_LINK_LOCAL, 6, &[]), Ok(())),
        (v6(OTHER_V6, 6, &[]), IP),
        (v6(NOBODY, 17, &udp(547)), IP),
        (v6(NOBODY, 58, &[143, 0, 0, 0, 0, 0, 0, 0]), Ok(())),
        // Protocols of the other IP version do not have their usual meaning.
        (v6(NOBODY, 2, &join), IP),
        (v4(nobody, 58, &[135; 40]), IP),
    ];
    for (frame, expected) in rows {
        assert_eq!(checked(&frame), expected, "{frame:x?}");
    }
    // A later fragment has a source address, too.
    let mut later = v4(OTHER_IP, 17, &[0; 8]);
    later[21] = 9;
    assert_eq!(checked(&later), IP);
}

#[test]
fn neighbours_are_told_of_own_addresses_only() {
    let rows = [
        (OWN_V6, neighbour(136, OWN_V6, 2, OWN.0), Ok(())),
        (OWN_LINK_LOCAL, neighbour(136, OWN_LINK_LOCAL, 2, OWN.0), Ok(())),
        (OWN_V6, neighbour(136, OTHER_V6, 2, OWN.0), NEIGHBOUR),
        (OWN_V6, neighbour(136, OWN_V6, 2, OTHER), NEIGHBOUR),
        (OWN_V6, neighbour(135, OTHER_V6, 1, OWN.0), Ok(())),
        (OWN_V6, neighbour(135, OTHER_V6, 1, OTHER), NEIGHBOUR),
        (NOBODY, neighbour(135, OWN_V6, 14, [0; 6]), Ok(())),
        (NOBODY, neighbour(135, OTHER_V6, 14, [0; 6]), NEIGHBOUR),
        (OWN_V6, [&[133, 0, 0, 0, 0, 0, 0, 0, 1, 1][..], &OTHER].concat(), NEIGHBOUR),
        (OWN_V6, neighbour(136, OWN_V6, 2, OWN.0)[..23].to_vec(), MALFORMED),
        (OWN_V6, neighbour(136, OWN_V6, 2, OWN.0)[..31].to_vec(), MALFORMED),
        // The second option is read, too, and one without length ends nothing early.
        (
            OWN_V6,
            [neighbour(136, OWN_V6, 2, OWN.0), [&[2, 1][..], &OTHER].concat()].concat(),
            NEIGHBOUR,
        ),
        (OWN_V6, [neighbour(136, OWN_V6, 2, OWN.0), vec![2, 0]].concat(), MALFORMED),
        (OWN_V6, vec![128, 0, 0, 0], Ok(())),
        (OWN_V6, vec![], MALFORMED),
    ];
    for (source, message, expected) in rows {
        assert_eq!(checked(&v6(source, 58, &message)), expected, "{message:x?}");
    }
    // RFC 6980: neighbour discovery has no fragments.
    let fragment = [&[58, 0, 0, 1, 0, 0, 0, 1][..], &neighbour(136, OWN_V6, 2, OWN.0)].concat();
    assert_eq!(checked(&v6(OWN_V6, 44, &fragment)), NEIGHBOUR);
}

#[test]
fn messages_of_routers_and_servers_need_a_right() {
    let advertisement = [&[134, 0, 0, 0, 64, 0, 7, 8][..], &[0; 8]].concat();
    let redirect = [&[137, 0, 0, 0, 0, 0, 0, 0][..], &[0; 32]].concat();
    let options = [&[58, 0, 1, 4, 0, 0, 0, 0][..], &advertisement].concat();
    let fragment = [&[58, 0, 0, 1, 0, 0, 0, 1][..], &advertisement].concat();
    let of_routers = [
        v6(OWN_LINK_LOCAL, 58, &advertisement),
        v6(OWN_LINK_LOCAL, 60, &options),
        v6(OWN_LINK_LOCAL, 44, &fragment),
        v6(OWN_LINK_LOCAL, 58, &redirect),
        v6(OWN_LINK_LOCAL, 58, &[&[130, 0, 0, 0][..], &[0; 20]].concat()),
        v6(OWN_LINK_LOCAL, 58, &[151, 0, 0, 0]),
        v4(OWN_IP, 2, &[0x11, 0, 0, 0, 0, 0, 0, 0]),
        v4(OWN_IP, 1, &[9, 0, 0, 0]),
        v4(OWN_IP, 1, &[5, 0, 0, 0]),
    ];
    let of_servers = [v4(OWN_IP, 17, &udp(68)), v6(OWN_LINK_LOCAL, 17, &udp(546))];
    let router = Guard { routes: true, ..Guard::default() };
    let server = Guard { serves_dhcp: true, ..Guard::default() };
    for (n, frame) in of_routers.iter().enumerate() {
        assert_eq!(checked(frame), ROUTER, "{n}");
        let passes = router.check(Some(OWN), &Packet::read(frame)).is_ok();
        assert_eq!(passes, n != 2, "{n}: only a fragment of it is refused");
    }
    for frame in &of_servers {
        assert_eq!(checked(frame), DHCP);
        assert_eq!(server.check(Some(OWN), &Packet::read(frame)), Ok(()));
        assert_eq!(router.check(Some(OWN), &Packet::read(frame)), DHCP);
    }
    // A port in the next fragment.
    let mut tiny = v4(OWN_IP, 17, &udp(68)[..2]);
    tiny[20] = 0x20;
    assert_eq!(checked(&tiny), MALFORMED);
}

/// A device whose port learns addresses has no address of its own that could be checked, but no rights
/// either.
#[test]
fn a_port_that_learns_may_send_for_others_but_not_as_a_router() {
    let guard = Guard::default();
    let check = |frame: &[u8]| guard.check(None, &Packet::read(frame));
    assert_eq!(check(&arp(OTHER, OTHER_IP, OWN_IP)), Ok(()));
    assert_eq!(check(&v4(OTHER_IP, 6, &[])), Ok(()));
    assert_eq!(check(&v6(OTHER_V6, 58, &neighbour(136, OTHER_V6, 2, OTHER))), Ok(()));
    assert_eq!(check(&v4(OTHER_IP, 17, &udp(68))), DHCP);
    // A port with a fixed Ethernet address, and any IP address, may link an IP address only to its own
    // Ethernet address.
    assert_eq!(guard.check(Some(OWN), &Packet::read(&arp(OWN.0, OTHER_IP, OWN_IP))), Ok(()));
    assert_eq!(guard.check(Some(OWN), &Packet::read(&arp(OTHER, OTHER_IP, OWN_IP))), NEIGHBOUR);
    assert_eq!(guard.check(None, &Packet::read(&framed(0x88cc, &[0; 30]))), Ok(()));
}
