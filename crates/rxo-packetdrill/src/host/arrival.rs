//! Packets that come in.

use std::net::SocketAddr;

use rxo_tcp::{Reset, Segment, State};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{FlowKey, Parsed, TcpFlags, Transport, parse_ip};

use super::record::Arrived;
use super::socket::Kind;
use super::{Fd, Packet, VirtualHost, departure};

impl VirtualHost {
    /// Takes one packet, from its IP header on. What is not whole, or not TCP or ICMP, is dropped.
    pub fn deliver(&mut self, packet: &[u8]) {
        let Ok(parsed) = parse_ip(packet) else { return };
        match parsed.transport {
            Transport::Tcp(_) => self.deliver_segment(packet, &parsed),
            Transport::Other(protocol) => self.deliver_message(protocol, packet, &parsed),
            _ => {}
        }
        self.settle();
    }

    fn deliver_segment(&mut self, packet: &[u8], parsed: &Parsed) {
        let is_whole =
            parsed.ip.checksum_ok && verify_transport(parsed, packet, Summer::portable());
        let Some(segment) = Segment::of_frame(packet.to_vec(), parsed, self.now) else { return };
        if !is_whole {
            return;
        }
        let pair = parsed.key.reversed();
        match self.receiver(&pair, &segment) {
            Some(number) => self.give(number, segment),
            None if self.would_drop(&pair, &segment) => {}
            None => self.refuse(&pair, &segment),
        }
    }

    /// What a listener drops without an answer: a SYN that it has no room for, and what says nothing
    /// (RFC 9293, section 3.10.7.2).
    fn would_drop(&self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> bool {
        let answered = TcpFlags::ACK | TcpFlags::RST;
        !segment.has(answered) && self.listener(pair).is_some()
    }

    /// The connection that `segment` is for: one that there is, or a new one of a listener.
    fn receiver(&mut self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> Option<u32> {
        if let Some(number) = self.connection(pair) {
            let endpoint = self.endpoints.get(&number)?;
            let Some(reuse) = endpoint.tcp.reuse_by(segment) else { return Some(number) };
            let listener = self.would_hear(pair, segment)?;
            self.endpoints.remove(&number);
            let next = self.open_passive(listener, *pair)?;
            self.endpoints.get_mut(&next)?.tcp.follow(reuse);
            return Some(next);
        }
        let listener = self.would_hear(pair, segment)?;
        self.open_passive(listener, *pair)
    }

    pub(super) fn connection(&self, pair: &FlowKey) -> Option<u32> {
        let of_pair = self
            .endpoints
            .iter()
            .find(|(_, endpoint)| endpoint.tcp.pair() == *pair && !endpoint.tcp.is_closed());
        of_pair.map(|(number, _)| *number)
    }

    /// The listener that takes `segment`: a SYN for an address where one listens.
    fn would_hear(&self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> Option<Fd> {
        let stops = TcpFlags::ACK | TcpFlags::RST;
        if !segment.has(TcpFlags::SYN) || segment.has(stops) {
            return None;
        }
        self.listener(pair)
    }

    fn listener(&self, pair: &FlowKey) -> Option<Fd> {
        let local = SocketAddr::new(pair.source(), pair.source_port());
        let mut sockets = self.sockets.iter();
        let hears = sockets.find(|(_, socket)| match &socket.kind {
            Kind::Listener(listener) => listener.hears(local),
            _ => false,
        });
        hears.map(|(fd, _)| *fd)
    }

    fn give(&mut self, number: u32, segment: Segment<Vec<u8>>) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get_mut(&number) else { return };
        let arrived = Arrived::of(&segment);
        endpoint.tcp.on_segment(now, segment);
        endpoint.record.arrived(&arrived, &endpoint.tcp, now);
        // As Linux: whatever comes lets everything leave but what TCP_CORK holds.
        endpoint.outbox.forget_more();
        endpoint.look();
        let is_gone = endpoint.tcp.state() == State::Listen;
        if is_gone {
            self.endpoints.remove(&number);
        }
    }

    /// No connection wants it (RFC 9293, section 3.10.7.1).
    fn refuse(&mut self, pair: &FlowKey, segment: &Segment<Vec<u8>>) {
        let Some(reset) = Reset::answer(segment) else { return };
        for bytes in departure::packets(pair, &reset.transmit()) {
            self.left.push_back(Packet { at: self.now, bytes });
        }
    }
}
