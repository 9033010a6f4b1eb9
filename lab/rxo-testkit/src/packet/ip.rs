//! Setters of the network layer.

use super::Packet;

impl Packet {
    /// Makes the packet IPv6.
    #[must_use]
    pub fn v6(mut self) -> Self {
        self.v6 = true;
        self
    }

    /// Makes the packet part of flow `flow`, with its own ports and payload stream. Four flows share a pair
    /// of addresses.
    #[must_use]
    pub fn flow(mut self, flow: u32) -> Self {
        self.host = flow / 4;
        self.ports = (1000 + (flow % 60_000) as u16, 443);
        self.stream = flow;
        self
    }

    /// Sets the number of the sending host, which determines its address.
    #[must_use]
    pub fn host(mut self, host: u32) -> Self {
        self.host = host;
        self
    }

    /// Sets the source and destination port.
    #[must_use]
    pub fn ports(mut self, source: u16, destination: u16) -> Self {
        self.ports = (source, destination);
        self
    }

    /// Makes the packet go in the other direction: swaps addresses and ports.
    #[must_use]
    pub fn reply(mut self) -> Self {
        self.is_reply = !self.is_reply;
        self
    }

    /// Sets the time to live, or hop limit.
    #[must_use]
    pub fn ttl(mut self, hops: u8) -> Self {
        self.hop_limit = hops;
        self
    }

    /// Sets type of service, or traffic class. The lowest two bits are ECN.
    #[must_use]
    pub fn tos(mut self, byte: u8) -> Self {
        self.traffic_class = byte;
        self
    }

    /// Sets the flow label (v6).
    #[must_use]
    pub fn flow_label(mut self, label: u32) -> Self {
        self.flow_label = label & 0x000f_ffff;
        self
    }

    /// Sets the identification (v4, and of a v6 fragment header).
    #[must_use]
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Sets or clears DF (v4).
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

    /// Sets the IPv4 options, padded to whole words with end-of-list bytes.
    #[must_use]
    pub fn ip_options(mut self, bytes: &[u8]) -> Self {
        self.ip_options = bytes.to_vec();
        self.ip_options.resize(bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Adds an extension header (v6) of type `kind` with the options `data`, padded with zeros.
    #[must_use]
    pub fn extension(mut self, kind: u8, data: &[u8]) -> Self {
        let mut body = data.to_vec();
        body.resize((data.len() + 2).next_multiple_of(8) - 2, 0);
        self.extensions.push((kind, body));
        self
    }

    /// Sets the protocol, or next header, to `number`. The bytes after the header stay a TCP
    /// segment.
    #[must_use]
    pub fn protocol(mut self, number: u8) -> Self {
        self.protocol = Some(number);
        self
    }

    /// Makes the packet a fragment: `offset` in units of 8 bytes, and `more` for more fragments. The first
    /// fragment still begins with the transport header. In v6 the fragment header follows the other
    /// extensions.
    #[must_use]
    pub fn fragment(mut self, offset: u16, more: bool) -> Self {
        self.fragment = Some((offset, more));
        self
    }

    /// Makes the IP length field wrong by `bytes`.
    #[must_use]
    pub fn length_lie(mut self, bytes: i32) -> Self {
        self.length_lie = bytes;
        self
    }

    /// Makes the IPv4 header length wrong by `words`.
    #[must_use]
    pub fn header_lie(mut self, words: i8) -> Self {
        self.header_lie = words;
        self
    }

    /// Makes the IPv4 header checksum wrong by one.
    #[must_use]
    pub fn bad_ip_checksum(mut self) -> Self {
        self.ip_checksum_error = 1;
        self
    }
}
