//! A guarded guest that sends anything, and naive neighbours that believe everything that reaches them,
//! including overlapping fragments, and what is hidden behind tags and extension headers.
//!
//! Shared by the property test and the fuzz target `switch`.

use std::net::IpAddr;
use std::time::Duration;

use rxo::switch::{Forward, Guard, MacAddress, Port, PortSettings, Switch, SwitchOptions, Vlans};
use rxo::{Frame, Instant};

#[path = "believer.rs"]
pub(crate) mod believer;

use believer::{Belief, Believer};

const OWN: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const OTHER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 9];
const OWN_V4: [u8; 4] = [192, 0, 2, 7];
const OTHER_V4: [u8; 4] = [192, 0, 2, 1];
const OWN_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const OTHER_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const OWN_LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0, 0, 2];

/// Sends the frames that `data` describes. Returns the number of frames that passed.
///
/// # Panics
/// If the neighbour believes something that the guest may not claim, or a frame reaches a port that it must
/// not reach.
pub(crate) fn run(data: &[u8]) -> u64 {
    let ips = vec![OWN_V4.into(), OWN_V6.into()];
    let (passed, lies) = lies(data, Some(Guard { ips, ..Guard::default() }));
    assert!(lies.is_empty(), "{lies:x?}");
    passed
}

/// Sends the frames that `data` describes through a switch with this guard at the guest. Returns the number
/// of frames that passed, and the false beliefs of the neighbours.
pub(crate) fn lies(data: &[u8], guard: Option<Guard>) -> (u64, Vec<(Belief, Vec<u8>)>) {
    let mut bytes = Bytes(data);
    let mut switch = switch(guard);
    let mut neighbours = [false, true].map(Believer::new);
    let (mut now, mut passed, mut lies) = (Instant::ZERO, 0, Vec::new());
    while !bytes.0.is_empty() {
        now = now + Duration::from_millis(bytes.next().into());
        let from = if bytes.one_of(&[true, true, true, false]) { 1 } else { bytes.next() % 5 };
        let frame = frame(&mut bytes);
        let sent = Frame::new(&frame[..], now);
        let Forward::To(to) = switch.forward(Port::new(from.into()), &sent, now) else { continue };
        let reaches = |port| to.contains(Port::new(port));
        assert!(!reaches(from.into()), "a frame went back");
        assert!(!(from == 3 && reaches(4) || from == 4 && reaches(3)), "{frame:x?}");
        if from != 1 {
            continue;
        }
        passed += 1;
        for neighbour in &mut neighbours {
            neighbour.hear(&frame, &mut |belief| {
                if !is_right(&belief) {
                    lies.push((belief, frame.clone()));
                }
            });
        }
    }
    (passed, lies)
}

/// Creates a switch with a wire, the guest, a port that learns, and two ports that are isolated from each
/// other.
fn switch(guard: Option<Guard>) -> Switch {
    let port = |vlans, fixed| PortSettings { vlans, fixed };
    let own = guard.as_ref().map(|_| MacAddress(OWN));
    let mut ports = vec![port(Vlans::All, None), port(Vlans::Only(0), own)];
    ports.extend([port(Vlans::Only(0), None); 3]);
    let mut switch = Switch::new(ports, SwitchOptions::default()).expect("valid ports");
    if let Some(guard) = guard {
        switch.guard(Port::new(1), guard);
    }
    for isolated in [3, 4] {
        switch.guard(Port::new(isolated), Guard { is_isolated: true, ..Guard::default() });
    }
    switch
}

/// Returns `true` if the guest may cause this belief in its neighbours.
fn is_right(belief: &Belief) -> bool {
    let own: [IpAddr; 3] = [OWN_V4.into(), OWN_V6.into(), OWN_LINK_LOCAL.into()];
    match *belief {
        Belief::Source(ip) => own.contains(&ip) || ip.is_unspecified(),
        Belief::Neighbour(ip, mac) => own.contains(&ip) && mac.is_none_or(|mac| mac == OWN),
        Belief::Asker(mac) => mac == OWN,
        Belief::Router | Belief::Dhcp => false,
    }
}

/// Bytes that make the decisions of a test; 0 after the end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.next()) % values.len()]
    }

    fn take(&mut self, most: u8) -> Vec<u8> {
        let count = usize::from(self.next() % (most + 1)).min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }
}

fn frame(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut frame = bytes.one_of(&[[0xff; 6], OTHER, [0x33, 0x33, 0, 0, 0, 1]]).to_vec();
    frame.extend(bytes.one_of(&[OWN, OWN, OWN, OTHER]));
    for _ in 0..bytes.one_of(&[0, 0, 0, 1, 2, 9]) {
        frame.extend(bytes.one_of(&[[0x81, 0, 0, 0], [0x88, 0xa8, 0, 7], [0x91, 0, 0, 0]]));
    }
    if bytes.one_of(&[false, false, true]) {
        frame.extend([0, 60, 0xaa, 0xaa, 3, 0, 0, 0]);
    }
    match bytes.next() % 4 {
        0 => frame.extend(arp(bytes)),
        1 => frame.extend([&[8, 0][..], &v4(bytes)].concat()),
        2 => frame.extend([&[0x86, 0xdd][..], &v6(bytes)].concat()),
        _ => frame.extend(bytes.take(80)),
    }
    let cut = bytes.one_of(&[0, 0, 0, 1, 9]);
    frame.truncate(frame.len() - cut);
    frame
}

fn arp(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut packet = bytes.one_of(&[[8, 6], [8, 6], [0x80, 0x35]]).to_vec();
    packet.extend([0, 1, 8, 0, 6, 4, 0, 1 + bytes.next() % 4]);
    packet.extend(bytes.one_of(&[OWN, OWN, OTHER]));
    packet.extend(bytes.one_of(&[OWN_V4, OTHER_V4, [0; 4]]));
    packet.extend([0; 6]);
    packet.extend(bytes.one_of(&[OWN_V4, OTHER_V4, [0; 4]]));
    packet
}

fn v4(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let (protocol, upper) = upper(bytes);
    let options = usize::from(bytes.next() % 3);
    let fragment = bytes.one_of(&[0_u16, 0, 0, 0x2000, 1, 0x2001, 2]);
    let total = (20 + 4 * options + upper.len()) as u16;
    let mut packet = vec![0x45 + options as u8, 0];
    packet.extend(bytes.one_of(&[total, total, total, 0, 40]).to_be_bytes());
    packet.extend([0, bytes.next() % 2]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(bytes.one_of(&[OWN_V4, OWN_V4, OTHER_V4, [0; 4]]));
    packet.extend(OTHER_V4);
    packet.extend(vec![1; 4 * options]);
    packet.extend(upper);
    packet
}

fn v6(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let (mut next, mut rest) = upper(bytes);
    for _ in 0..bytes.one_of(&[0, 0, 1, 2, 3, 20]) {
        let header = match bytes.one_of(&[0_u8, 43, 44, 44, 44, 51, 60, 135]) {
            44 => {
                let [high, low] = bytes.one_of(&[0_u16, 1, 1, 8, 9, 16]).to_be_bytes();
                (44, vec![next, 0, high, low, 0, 0, 0, bytes.next() % 2])
            }
            51 => (51, [&[next, 1][..], &[0; 10]].concat()),
            other => (other, vec![next, 0, 1, 4, 0, 0, 0, 0]),
        };
        rest.splice(..0, header.1);
        next = header.0;
    }
    let length = rest.len() as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(bytes.one_of(&[length, length, length, 0, 24]).to_be_bytes());
    packet.extend([next, 255]);
    packet.extend(bytes.one_of(&[OWN_V6, OWN_LINK_LOCAL, OTHER_V6, [0; 16]]));
    packet.extend(OTHER_V6);
    packet.extend(rest);
    packet
}

/// Returns an upper layer that is worth forging, or arbitrary bytes.
fn upper(bytes: &mut Bytes<'_>) -> (u8, Vec<u8>) {
    let (protocol, mut upper) = match bytes.next() % 5 {
        0 => (17, vec![0, 67, bytes.one_of(&[0, 2]), bytes.one_of(&[67, 68, 34]), 0, 8, 0, 0]),
        1 => (1, vec![bytes.one_of(&[8, 5, 9]), 0, 0, 0, 0, 0, 0, 0]),
        2 => (2, vec![bytes.one_of(&[0x11, 0x16, 0x22]), 0, 0, 0, 0, 0, 0, 0]),
        3 => {
            let mut message = vec![bytes.one_of(&[128, 130, 133, 134, 135, 136, 137]), 0, 0, 0];
            message.extend([0; 4]);
            message.extend(bytes.one_of(&[OWN_V6, OTHER_V6]));
            for _ in 0..bytes.next() % 3 {
                message.extend([bytes.one_of(&[1, 2, 14]), bytes.one_of(&[1, 1, 1, 0])]);
                message.extend(bytes.one_of(&[OWN, OTHER]));
            }
            (58, message)
        }
        _ => (bytes.one_of(&[17, 58, 2, 1, 51, 44, 60]), bytes.take(48)),
    };
    if bytes.one_of(&[false, false, true]) {
        upper.truncate(usize::from(bytes.next() % 32));
    }
    (protocol, upper)
}
