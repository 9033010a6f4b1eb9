//! A neighbour that believes everything it receives: it skips all tags and extension headers, reassembles
//! fragments however they overlap, and verifies nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Something that a host believes because of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// A packet came from this address.
    Source(IpAddr),
    /// This address is in use, by the station with this link-layer address if the message contains one.
    Neighbour(IpAddr, Option<[u8; 6]>),
    /// The station that has sent the request has this link-layer address.
    Asker([u8; 6]),
    /// The sender is a router, or redirects traffic.
    Router,
    /// The sender is a DHCP server.
    Dhcp,
}

/// Fragments of one packet: the offset and the bytes of each, and whether more fragments follow.
type Fragments = Vec<(usize, Vec<u8>, bool)>;

/// A host that believes everything. If two fragments contain the same bytes, it keeps the last ones if
/// `last_wins`, otherwise the first.
pub(crate) struct Believer {
    last_wins: bool,
    fragments: BTreeMap<(IpAddr, u32, u8), Fragments>,
}

type Tell<'t> = &'t mut dyn FnMut(Belief);

impl Believer {
    pub(crate) const fn new(last_wins: bool) -> Self {
        Self { last_wins, fragments: BTreeMap::new() }
    }

    /// Reads a frame, and passes the resulting beliefs of the host to `tell`.
    pub(crate) fn hear(&mut self, frame: &[u8], tell: Tell<'_>) {
        let mut rest = frame.get(12..).unwrap_or_default();
        while let [0x81, 0, _, _, behind @ ..]
        | [0x88, 0xa8, _, _, behind @ ..]
        | [0x91, 0, _, _, behind @ ..] = rest
        {
            rest = behind;
        }
        if let [0..6, _, 0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, behind @ ..] = rest {
            rest = behind;
        }
        match rest {
            [0x08, 0x06, packet @ ..] => Self::arp(packet, tell),
            [0x80, 0x35, packet @ ..] if packet.get(7) == Some(&4) && packet.len() >= 28 => {
                tell(Belief::Dhcp);
            }
            [0x08, 0x00, packet @ ..] => self.v4(packet, tell),
            [0x86, 0xdd, packet @ ..] => self.v6(packet, tell),
            _ => {}
        }
    }

    fn arp(packet: &[u8], tell: Tell<'_>) {
        let Some(packet) = packet.first_chunk::<28>() else { return };
        if packet[..6] != [0, 1, 8, 0, 6, 4] {
            return;
        }
        let mac = packet[8..14].try_into().expect("six bytes");
        let ip =
            |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        match (ip(14), ip(24)) {
            (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED) => {}
            // A probe: a host that has this address, or wants it, has a rival.
            (Ipv4Addr::UNSPECIFIED, target) => tell(Belief::Neighbour(target.into(), Some(mac))),
            (sender, _) => tell(Belief::Neighbour(sender.into(), Some(mac))),
        }
    }

    fn v4(&mut self, packet: &[u8], tell: Tell<'_>) {
        let Some(fixed) = packet.first_chunk::<20>() else { return };
        let header = usize::from(fixed[0] & 15) * 4;
        let Some(payload) = cut(packet, fixed[2], fixed[3], 0, header) else { return };
        if fixed[0] >> 4 != 4 || header < 20 {
            return;
        }
        let source = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into();
        tell(Belief::Source(source));
        let field = u16::from_be_bytes([fixed[6], fixed[7]]);
        let (offset, is_more) = (usize::from(field & 0x1fff) * 8, field & 0x2000 != 0);
        let key = (source, u32::from(fixed[5]), fixed[9]);
        if let Some(whole) = self.joined(key, offset, payload, is_more) {
            self.upper(source, fixed[9], &whole, 40, tell);
        }
    }

    fn v6(&mut self, packet: &[u8], tell: Tell<'_>) {
        let Some(fixed) = packet.first_chunk::<40>() else { return };
        let Some(payload) = cut(packet, fixed[4], fixed[5], 40, 40) else { return };
        if fixed[0] >> 4 != 6 {
            return;
        }
        let source: [u8; 16] = fixed[8..24].try_into().expect("sixteen bytes");
        let source = Ipv6Addr::from(source).into();
        tell(Belief::Source(source));
        self.upper(source, fixed[6], payload, 40, tell);
    }

    /// Reads the headers after an IP header, at most `depth` of them.
    fn upper(&mut self, source: IpAddr, next: u8, bytes: &[u8], depth: u8, tell: Tell<'_>) {
        let is_extension = matches!(next, 0 | 43 | 60 | 135 | 139 | 140) && source.is_ipv6();
        if depth == 0 {
            return;
        }
        match (next, bytes) {
            (51, [inner, units, ..]) => {
                let behind = bytes.get((usize::from(*units) + 2) * 4..);
                self.upper(source, *inner, behind.unwrap_or_default(), depth - 1, tell);
            }
            (_, [inner, units, ..]) if is_extension => {
                let behind = bytes.get((usize::from(*units) + 1) * 8..);
                self.upper(source, *inner, behind.unwrap_or_default(), depth - 1, tell);
            }
            (44, [inner, _, high, low, _, _, _, id, payload @ ..]) if source.is_ipv6() => {
                let field = u16::from_be_bytes([*high, *low]);
                let key = (source, u32::from(*id), depth);
                let offset = usize::from(field & 0xfff8);
                // The next header of the packet is the one in the first fragment; it is stored as a byte
                // before that fragment's payload.
                let name = if offset == 0 { &[*inner][..] } else { &[] };
                let named = [name, payload].concat();
                let at = if offset == 0 { 0 } else { offset + 1 };
                if let Some(whole) = self.joined(key, at, &named, field & 1 != 0) {
                    let (inner, whole) = whole.split_first().expect("a first fragment");
                    self.upper(source, *inner, whole, depth - 1, tell);
                }
            }
            (17, [_, _, 0, 68, ..] | [_, _, 2, 34, ..]) => tell(Belief::Dhcp),
            (1, [5 | 9, ..]) | (2, [0x11, ..]) if source.is_ipv4() => tell(Belief::Router),
            (58, message) if source.is_ipv6() => discovery(source, message, tell),
            _ => {}
        }
    }

    /// Keeps a fragment. Returns the whole packet if it is complete.
    fn joined(
        &mut self,
        key: (IpAddr, u32, u8),
        offset: usize,
        bytes: &[u8],
        is_more: bool,
    ) -> Option<Vec<u8>> {
        if offset == 0 && !is_more {
            return Some(bytes.to_vec());
        }
        let fragments = self.fragments.entry(key).or_default();
        fragments.push((offset, bytes.to_vec(), is_more));
        let ends = fragments.iter().filter(|(_, _, is_more)| !is_more);
        let end = ends.map(|(offset, bytes, _)| offset + bytes.len()).max()?;
        let mut whole = vec![None; end];
        for (offset, bytes, _) in fragments.iter() {
            for (place, byte) in whole.iter_mut().skip(*offset).zip(bytes) {
                if self.last_wins || place.is_none() {
                    *place = Some(*byte);
                }
            }
        }
        whole.into_iter().collect()
    }
}

/// Returns the bytes after a header of `header` bytes, without those beyond the length field of the packet. A
/// length of 0 is ignored.
fn cut(packet: &[u8], high: u8, low: u8, more: usize, header: usize) -> Option<&[u8]> {
    let total = more + usize::from(u16::from_be_bytes([high, low]));
    let packet = packet.get(..total).filter(|_| total > header).unwrap_or(packet);
    packet.get(header..)
}

fn discovery(source: IpAddr, message: &[u8], tell: Tell<'_>) {
    let target = || {
        let target: [u8; 16] = message.get(8..24)?.try_into().ok()?;
        Some(IpAddr::from(target))
    };
    let options = |at: usize| message.get(at..).unwrap_or_default();
    match message {
        [130 | 134 | 137 | 151, ..] => tell(Belief::Router),
        [136, ..] => {
            let Some(target) = target() else { return };
            tell(Belief::Neighbour(target, None));
            addresses(options(24), 2, &mut |mac| tell(Belief::Neighbour(target, Some(mac))));
        }
        [135, ..] => {
            if let (true, Some(target)) = (source.is_unspecified(), target()) {
                tell(Belief::Neighbour(target, None));
            }
            addresses(options(24), 1, &mut |mac| tell(Belief::Asker(mac)));
        }
        [133, ..] => addresses(options(8), 1, &mut |mac| tell(Belief::Asker(mac))),
        _ => {}
    }
}

/// Passes to `tell` the addresses in options of this type, until an option has no length.
fn addresses(mut options: &[u8], wanted: u8, tell: &mut dyn FnMut([u8; 6])) {
    while let [kind, units, a, b, c, d, e, f, ..] = *options {
        if units == 0 {
            return;
        }
        if kind == wanted {
            tell([a, b, c, d, e, f]);
        }
        options = options.get(usize::from(units) * 8..).unwrap_or_default();
    }
}
