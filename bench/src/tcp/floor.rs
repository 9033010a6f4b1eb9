//! The lower bound of any stack: copies every byte to the application and sends one acknowledgement
//! per turn, but checks, remembers and counts nothing.
//!
//! Reads the segments of one connection, which are always in order on this link.

use rxo_frame::Instant;
use rxo_wire::build::{Ipv4Header, TcpHeader, maximum_segment_size_option};
use rxo_wire::{PROTOCOL_TCP, SeqNumber, TcpFlags, Transport, parse_ip};

use super::link::{Buffer, MTU, Port};
use super::stack::{
    BUFFER_BYTES, CALL_BYTES, CLIENT, FIRST_PORT, Reading, SERVER, SERVER_PORT, Setting, Stack,
    look_at,
};

/// Offset of the payload: IPv4 and TCP headers without options.
const TEXT_AT: usize = 40;
const SCALE: u8 = 3;
const ISS: SeqNumber = SeqNumber(7);

/// The state of the copying.
pub(crate) struct Floor {
    port: Port,
    /// The next byte expected.
    nxt: SeqNumber,
    reading: Reading,
    application: Vec<u8>,
    read_bytes: u64,
}

impl Floor {
    /// # Panics
    /// If it cannot run this race.
    pub(crate) fn new(setting: Setting) -> Self {
        assert!(setting.connections == 1 && !setting.timestamps, "one connection, no options");
        Self {
            port: Port::new(setting.checksums, false),
            nxt: SeqNumber(0),
            reading: setting.reading,
            application: vec![0; CALL_BYTES],
            read_bytes: 0,
        }
    }

    /// Reads the SYN.
    fn open(&mut self, packet: &Buffer) {
        let parsed = parse_ip(packet.as_ref()).expect("a packet of the generator");
        let Transport::Tcp(tcp) = parsed.transport else { panic!("the generator sends TCP") };
        self.nxt = tcp.seq + 1;
        let options = [&maximum_segment_size_option((MTU - TEXT_AT) as u16)[..], &[1, 3, 3, SCALE]];
        self.answer(ISS, TcpFlags::SYN | TcpFlags::ACK, &options.concat());
    }

    fn answer(&mut self, seq: SeqNumber, flags: TcpFlags, options: &[u8]) {
        let tcp = TcpHeader {
            source_port: SERVER_PORT,
            destination_port: FIRST_PORT,
            seq,
            ack: self.nxt,
            flags,
            window: (BUFFER_BYTES >> SCALE) as u16,
            options,
            ..TcpHeader::default()
        };
        let ip = Ipv4Header {
            source: SERVER.into(),
            destination: CLIENT.into(),
            protocol: PROTOCOL_TCP,
            payload_bytes: tcp.bytes(),
            ..Ipv4Header::default()
        };
        self.port.send(ip.bytes() + tcp.bytes(), |to| {
            let segment = ip.write(to).expect("room for the headers");
            tcp.write(segment).expect("room for the headers");
        });
    }
}

impl Stack for Floor {
    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn turn(&mut self, _now: Instant) {
        let mut at = 0;
        while let Some(frame) = self.port.received.pop_front() {
            if self.nxt == SeqNumber(0) {
                self.open(&frame.bytes);
                continue;
            }
            let text = &frame.bytes()[TEXT_AT..];
            match self.reading {
                Reading::InPlace => look_at(text),
                Reading::Copied => {
                    at = if at + text.len() > CALL_BYTES { 0 } else { at };
                    self.application[at..at + text.len()].copy_from_slice(text);
                    at += text.len();
                }
            }
            self.nxt = self.nxt + text.len() as u32;
            self.read_bytes += text.len() as u64;
        }
        if self.nxt != SeqNumber(0) {
            self.answer(ISS + 1, TcpFlags::ACK, &[]);
        }
    }

    fn idle(&mut self, now: Instant) {
        self.turn(now);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}
