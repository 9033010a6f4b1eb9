//! A sender that saturates the receiver. It replaces the wire, sends full segments as far as the window
//! allows, and processes the ACKs.
//!
//! Linux senders share their core with the card, and leave the receiver idle for two thirds of the time. This
//! sender spends one copy per segment, so the receiver always has frames. It loses nothing and has no
//! congestion control. The card's other work is the same: it expands ACK templates and puts frames into the
//! ring.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use rxo::ack::expand_packed;
use rxo::device::middleware::WireSource;
use rxo::live::Device;
use rxo::wire::tcp::{AckRecord, OptionKind, Options, TcpOption, Timestamp};
use rxo::wire::{SeqNumber, TcpFlags, Transport, parse};
use rxo::{ChecksumStatus, Frame, FrameSink, FrameSource};
use rxo_demo::running::Running;
use rxo_driver::{DeviceBuf, DeviceSink, DeviceSource, clock};
use rxo_testbed::Lab;
use rxo_testbed::traffic::Pattern;

use crate::card::{self, Expansion};
use crate::modelled::{CLIENT_MAC, Ends, Said, WINDOW, arp_answer, arp_request, mac_of};

/// Starts the generator on `core`, on the card's side of `socket`. It sends to the receiver at `address`,
/// whose templates are expanded by `expansion`, until it is stopped.
pub(crate) fn generator(
    lab: &Lab,
    (socket, expansion): (PathBuf, Expansion),
    address: SocketAddr,
    core: Option<usize>,
) -> Result<Running<()>> {
    let SocketAddr::V4(server) = address else { bail!("{address}: the generator speaks IPv4") };
    Running::start(lab, ("rxo-generator", core), move |stop, ready| {
        let Device { source, sink } = card::ring(&socket, card::MODERATION, expansion)?;
        ready();
        let source = WireSource::new(source, false).expanding(expand_packed);
        let mut card = Card { source, sink, received: Vec::new(), client: neighbour(*server.ip()) };
        match card.connect(server, stop)? {
            Some(mut flow) => card.send_until(&mut flow, stop),
            None => Ok(()),
        }
    })
}

/// Returns the sender's address, in the network of `server`.
fn neighbour(server: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = server.octets();
    Ipv4Addr::new(a, b, c, 77)
}

/// The card's end of the ring.
struct Card {
    source: WireSource<DeviceSource>,
    sink: DeviceSink,
    received: Vec<Frame<DeviceBuf>>,
    client: Ipv4Addr,
}

/// The state of the connection.
struct Flow {
    /// SND.NXT; the next field is the sequence number after the window.
    nxt: SeqNumber,
    edge: SeqNumber,
    /// Window scale shift of the receiver.
    shift: u8,
    /// Payload bytes sent so far.
    offset: u64,
    /// The last TSval of the receiver.
    echo: u32,
    /// Templates of [`AT_ONCE`] segments; only sequence number, timestamp and payload change.
    frames: Vec<Vec<u8>>,
}

impl Card {
    /// Opens a connection. Returns `None` if `stop` is set first.
    fn connect(&mut self, server: SocketAddrV4, stop: &AtomicBool) -> Result<Option<Flow>> {
        let (client, server_port, server) = (self.client, server.port(), *server.ip());
        // Until the receiver has connected to the ring, frames to it would be dropped.
        let Some(()) = self.ask(stop, |it| Ok(it.sink.load().map(drop)))? else {
            return Ok(None);
        };
        self.send(&[&arp_request(client, server)])?;
        let found = self.ask(stop, |it| Ok(it.find(|frame| mac_of(server, frame))))?;
        let Some(server_mac) = found else { return Ok(None) };
        let (client_mac, window) = (CLIENT_MAC, WINDOW);
        let ends = Ends { client, client_mac, window, server, server_mac, server_port };
        let syn = Said { port: CLIENT_PORT, seq: ISS.0, flags: TcpFlags::SYN, ..said(0) };
        self.send(&[&syn.frame(&ends)?])?;
        let Some(flow) = self.ask(stop, |it| Ok(it.find(Flow::opened)))? else {
            return Ok(None);
        };
        let (mut flow, ack) = flow;
        let (seq, flags) = (flow.nxt.0, TcpFlags::ACK);
        let all = Said { port: CLIENT_PORT, seq, ack: ack.0, flags, ..said(flow.echo) };
        self.send(&[&all.frame(&ends)?])?;
        let segment = Said { text: &[0; SEGMENT_BYTES], ..all }.frame(&ends)?;
        flow.frames = vec![segment; AT_ONCE];
        Ok(Some(flow))
    }

    /// Receives frames until `answer` returns a value. Returns `None` if `stop` is set first.
    fn ask<T>(
        &mut self,
        stop: &AtomicBool,
        mut answer: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        while !stop.load(Ordering::Relaxed) {
            self.receive()?;
            if let Some(answer) = answer(self)? {
                return Ok(Some(answer));
            }
            thread::sleep(Duration::from_micros(100));
        }
        Ok(None)
    }

    /// Receives the frames that the receiver has sent, and answers its ARP requests.
    fn receive(&mut self) -> Result<()> {
        self.received.clear();
        self.source.receive(&mut self.received, MOST_FRAMES)?;
        let answers: Vec<_> = self
            .received
            .iter()
            .filter_map(|frame| arp_answer(self.client, frame.bytes()))
            .collect();
        answers.iter().try_for_each(|answer| self.send(&[answer]))
    }

    fn find<T>(&self, of: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        self.received.iter().find_map(|frame| of(frame.bytes()))
    }

    /// Sends frames, marked as verified by a card. The ring must have free slots.
    fn send(&mut self, frames: &[&[u8]]) -> Result<()> {
        let now = clock::now();
        let verified =
            |&bytes| Frame { checksum: ChecksumStatus::Verified, ..Frame::new(bytes, now) };
        Ok(self.sink.transmit(frames.iter().map(verified))?)
    }

    fn send_until(&mut self, flow: &mut Flow, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.receive()?;
            self.received.iter().for_each(|frame| flow.receive(frame.bytes()));
            if self.sink.is_blocked() {
                self.sink.resume()?;
                continue;
            }
            let count = flow.fill();
            let frames: Vec<&[u8]> = flow.frames[..count].iter().map(Vec::as_slice).collect();
            if count > 0 {
                self.send(&frames)?;
            }
        }
        Ok(())
    }
}

impl Flow {
    /// Returns the connection that the SYN-ACK in `frame` opens, and the sequence number to acknowledge;
    /// `None` if `frame` is no SYN-ACK.
    fn opened(frame: &[u8]) -> Option<(Self, SeqNumber)> {
        let parsed = parse(frame).ok()?;
        let Transport::Tcp(tcp) = parsed.transport else { return None };
        let options = &frame[parsed.at.transport as usize + 20..parsed.at.payload as usize];
        let is_answer = tcp.flags.contains(TcpFlags::SYN.union(TcpFlags::ACK));
        let echo = Timestamp::find(options).filter(|_| is_answer)?.value;
        let (nxt, shift) = (ISS + 1, window_shift(options)?);
        // The window in a SYN is not scaled.
        let edge = nxt + u32::from(tcp.window);
        let flow = Self { nxt, edge, shift, offset: 0, echo, frames: Vec::new() };
        Some((flow, tcp.seq + 1))
    }

    /// Updates the window from an ACK in `frame`. ACKs have no options but timestamps.
    fn receive(&mut self, frame: &[u8]) {
        let ack = frame.get(TCP_AT..).and_then(|tcp| AckRecord::read(tcp, 0, 0));
        let Some(ack) = ack.filter(|ack| ack.has_timestamp) else { return };
        let edge = ack.ack + (u32::from(ack.window) << self.shift);
        if !edge.is_before(self.edge) {
            (self.edge, self.echo) = (edge, ack.ts_value);
        }
    }

    /// Writes the segments that the window permits. Returns their number.
    fn fill(&mut self) -> usize {
        let pattern = Pattern::of_port(CLIENT_PORT);
        let room = u32::try_from(self.edge - self.nxt).unwrap_or(0) as usize / SEGMENT_BYTES;
        let count = room.min(AT_ONCE);
        let (value, echo) = (millis().to_be_bytes(), self.echo.to_be_bytes());
        for frame in &mut self.frames[..count] {
            let (head, text) = frame.split_at_mut(TEXT_AT);
            head[SEQ_AT..][..4].copy_from_slice(&self.nxt.0.to_be_bytes());
            head[TIMESTAMP_AT..][..4].copy_from_slice(&value);
            head[TIMESTAMP_AT + 4..].copy_from_slice(&echo);
            text.copy_from_slice(pattern.bytes(self.offset, SEGMENT_BYTES));
            self.nxt = self.nxt + SEGMENT_BYTES as u32;
            self.offset += SEGMENT_BYTES as u64;
        }
        count
    }
}

/// Returns the fields that all packets share, with the receiver's last TSval.
fn said(echo: u32) -> Said<'static> {
    Said { timestamp: Timestamp { value: millis(), echo }, ..Said::default() }
}

fn millis() -> u32 {
    (clock::now().as_nanos() / 1_000_000) as u32
}

/// Returns the shift of the window scale option (RFC 7323, section 2.2); `None` if the option is missing.
fn window_shift(options: &[u8]) -> Option<u8> {
    let scale = |option: TcpOption<'_>| match (option.kind, option.data) {
        (OptionKind::WindowScale, &[shift]) => Some(shift),
        _ => None,
    };
    Options::new(options).map_while(Result::ok).find_map(scale)
}

const CLIENT_PORT: u16 = 20_000;
const ISS: SeqNumber = SeqNumber(1_000);
/// Offset of the TCP header, after Ethernet and IPv4 without options.
const TCP_AT: usize = 34;
const SEQ_AT: usize = TCP_AT + 4;
/// Offset of TSval: after two no-operations, kind and length.
const TIMESTAMP_AT: usize = TCP_AT + 24;
const TEXT_AT: usize = TCP_AT + 32;
/// Payload bytes of a full segment with timestamps, for an MTU of 1,500.
const SEGMENT_BYTES: usize = 1_448;
/// Segments that are written between two checks for ACKs.
const AT_ONCE: usize = 64;
const MOST_FRAMES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_what_the_window_allows_and_the_pattern_says() {
        let ends = Ends {
            client: Ipv4Addr::new(10, 0, 0, 77),
            client_mac: CLIENT_MAC,
            window: WINDOW,
            server: Ipv4Addr::new(10, 0, 0, 1),
            server_mac: [2; 6],
            server_port: 5_000,
        };
        let syn_ack =
            Said { seq: 7, ack: ISS.0 + 1, flags: TcpFlags::SYN | TcpFlags::ACK, ..said(0) };
        let (mut flow, ack) = Flow::opened(&syn_ack.frame(&ends).unwrap()).unwrap();
        assert_eq!((ack, flow.shift, flow.edge - flow.nxt), (SeqNumber(8), 7, 2_048));
        flow.frames = vec![vec![0; TEXT_AT + SEGMENT_BYTES]; AT_ONCE];
        assert_eq!(flow.fill(), 1, "two segments are more than 2,048 bytes");
        let pattern = Pattern::of_port(CLIENT_PORT);
        assert_eq!(flow.frames[0][TEXT_AT..], *pattern.bytes(0, SEGMENT_BYTES));
        assert_eq!(flow.fill(), 0, "the window is full");
        let acknowledges = |segments: u32| {
            let ack = ISS.0 + 1 + segments * SEGMENT_BYTES as u32;
            Said { ack, flags: TcpFlags::ACK, ..said(0) }.frame(&ends).unwrap()
        };
        flow.receive(&acknowledges(1));
        let edge = flow.edge;
        assert_eq!(flow.fill(), AT_ONCE, "a scaled window has room for 181");
        assert_eq!(flow.frames[1][TEXT_AT..], *pattern.bytes(2 * 1_448, SEGMENT_BYTES));
        flow.receive(&acknowledges(0));
        assert_eq!(flow.edge, edge, "an old acknowledgement");
    }
}
