//! Received packets.

use std::net::SocketAddr;

use rxo_tcp::{Reset, Segment, State};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{FlowKey, Parsed, TcpFlags, Transport, parse_ip};

use super::record::Arrived;
use super::socket::Kind;
use super::{Fd, Packet, VirtualHost, departure};

impl VirtualHost {
    /// Processes one packet, which begins with its IP header. Drops truncated packets and those
    /// that are neither TCP nor ICMP.
    pub fn deliver(&mut self, packet: &[u8]) {
        let Ok(parsed) = parse_ip(packet) else { return };
        match parsed.transport {
            Transport::Tcp(_) => self.deliver_segment(packet, &parsed),
            Transport::Other(protocol) => self.deliver_message(protocol, packet, &parsed),
            _ => {}
        }
        self.update();
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

    /// Whether a listener drops the segment without an answer: a SYN for which it has no room, or a
    /// segment that needs no answer (RFC 9293, section 3.10.7.2).
    fn would_drop(&self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> bool {
        let answered = TcpFlags::ACK | TcpFlags::RST;
        !segment.has(answered) && self.listener(pair).is_some()
    }

    /// Finds the connection for `segment`: an existing one, or a new one of a listener.
    fn receiver(&mut self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> Option<u32> {
        if let Some(number) = self.connection(pair) {
            let endpoint = self.endpoints.get(&number)?;
            let Some(reuse) = endpoint.tcp.reuse_by(segment) else { return Some(number) };
            let listener = self.find_listener(pair, segment)?;
            self.endpoints.remove(&number);
            let next = self.open_passive(listener, *pair)?;
            self.endpoints.get_mut(&next)?.tcp.follow(reuse);
            return Some(next);
        }
        let listener = self.find_listener(pair, segment)?;
        self.open_passive(listener, *pair)
    }

    pub(super) fn connection(&self, pair: &FlowKey) -> Option<u32> {
        let of_pair = self
            .endpoints
            .iter()
            .find(|(_, endpoint)| endpoint.tcp.pair() == *pair && !endpoint.tcp.is_closed());
        of_pair.map(|(number, _)| *number)
    }

    /// Finds the listener that accepts `segment`, a SYN to an address on which it listens.
    fn find_listener(&self, pair: &FlowKey, segment: &Segment<Vec<u8>>) -> Option<Fd> {
        let stops = TcpFlags::ACK | TcpFlags::RST;
        if !segment.has(TcpFlags::SYN) || segment.has(stops) {
            return None;
        }
        self.listener(pair)
    }

    fn listener(&self, pair: &FlowKey) -> Option<Fd> {
        let local = SocketAddr::new(pair.source(), pair.source_port());
        let mut sockets = self.sockets.iter();
        let found = sockets.find(|(_, socket)| match &socket.kind {
            Kind::Listener(listener) => listener.accepts(local),
            _ => false,
        });
        found.map(|(fd, _)| *fd)
    }

    fn give(&mut self, number: u32, segment: Segment<Vec<u8>>) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get_mut(&number) else { return };
        let arrived = Arrived::of(&segment);
        endpoint.tcp.on_arrival(now, segment.into());
        endpoint.record.arrived(&arrived, &endpoint.tcp, now);
        // Like Linux: any received packet releases everything except what TCP_CORK holds.
        endpoint.outbox.forget_more();
        endpoint.record_events();
        let is_gone = endpoint.tcp.state() == State::Listen;
        if is_gone {
            self.endpoints.remove(&number);
        }
    }

    /// Answers a segment that belongs to no connection (RFC 9293, section 3.10.7.1).
    fn refuse(&mut self, pair: &FlowKey, segment: &Segment<Vec<u8>>) {
        let Some(reset) = Reset::answer(segment) else { return };
        for bytes in departure::packets(pair, &reset.transmit()) {
            self.left.push_back(Packet { at: self.now, bytes });
        }
    }
}
