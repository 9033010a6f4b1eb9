//! Setters of the network layer.

use super::Packet;

impl Packet {
    /// IPv6 instead of IPv4.
    #[must_use]
    pub fn v6(mut self) -> Self {
        self.v6 = true;
        self
    }

    /// Flow number `flow`: its own ports and stream; four flows share a pair of addresses.
    #[must_use]
    pub fn flow(mut self, flow: u32) -> Self {
        self.host = flow / 4;
        self.ports = (1000 + (flow % 60_000) as u16, 443);
        self.stream = flow;
        self
    }

    /// The number of the sending host, which makes its address.
    #[must_use]
    pub fn host(mut self, host: u32) -> Self {
        self.host = host;
        self
    }

    /// Source and destination port.
    #[must_use]
    pub fn ports(mut self, source: u16, destination: u16) -> Self {
        self.ports = (source, destination);
        self
    }

    /// The other direction of the same connection: addresses and ports change places.
    #[must_use]
    pub fn reply(mut self) -> Self {
        self.is_reply = !self.is_reply;
        self
    }

    /// Time to live, or hop limit.
    #[must_use]
    pub fn ttl(mut self, hops: u8) -> Self {
        self.hop_limit = hops;
        self
    }

    /// Type of service, or traffic class: the ECN bits are its lowest two.
    #[must_use]
    pub fn tos(mut self, byte: u8) -> Self {
        self.traffic_class = byte;
        self
    }

    /// The flow label (v6).
    #[must_use]
    pub fn flow_label(mut self, label: u32) -> Self {
        self.flow_label = label & 0x000f_ffff;
        self
    }

    /// The identification (v4; of the fragment header in v6).
    #[must_use]
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Whether the DF bit is set (v4).
    #[must_use]
    pub fn df(mut self, set: bool) -> Self {
        self.dont_fragment = set;
        self
    }

    /// Sets the reserved bit beside DF (v4).
    #[must_use]
    pub fn reserved_bit(mut self) -> Self {
        self.reserved_bit = true;
        self
    }

    /// IPv4 options; filled up to whole words with end-of-list bytes.
    #[must_use]
    pub fn ip_options(mut self, bytes: &[u8]) -> Self {
        self.ip_options = bytes.to_vec();
        self.ip_options.resize(bytes.len().next_multiple_of(4), 0);
        self
    }

    /// An extension header (v6) of kind `kind` whose options are `data`, filled up with zeros.
    #[must_use]
    pub fn extension(mut self, kind: u8, data: &[u8]) -> Self {
        let mut body = data.to_vec();
        body.resize((data.len() + 2).next_multiple_of(8) - 2, 0);
        self.extensions.push((kind, body));
        self
    }

    /// The protocol, or next header, in place of TCP's own; the bytes behind stay a segment's.
    #[must_use]
    pub fn protocol(mut self, number: u8) -> Self {
        self.protocol = Some(number);
        self
    }

    /// A fragment: offset in units of 8 bytes, and whether more follow. The first one still begins
    /// with the transport header. In v6 this is a fragment header after the other extensions.
    #[must_use]
    pub fn fragment(mut self, offset: u16, more: bool) -> Self {
        self.fragment = Some((offset, more));
        self
    }

    /// The IP length field says this much more (or less) than there is.
    #[must_use]
    pub fn length_lie(mut self, bytes: i32) -> Self {
        self.length_lie = bytes;
        self
    }

    /// The IPv4 header length says this many words more (or less) than there are.
    #[must_use]
    pub fn header_lie(mut self, words: i8) -> Self {
        self.header_lie = words;
        self
    }

    /// An IPv4 header checksum that is off by one.
    #[must_use]
    pub fn bad_ip_checksum(mut self) -> Self {
        self.ip_checksum_error = 1;
        self
    }
}
