//! The lower bound of any stack: only the copies, and one ACK per turn, without checks, state or counters. It
//! handles one connection, whose segments are always in order on this link.

mod reader;
mod writer;

use rxo_frame::Instant;
use rxo_wire::build::{Ipv4Header, TcpHeader};
use rxo_wire::{PROTOCOL_TCP, SeqNumber, TcpFlags};

use self::reader::Reader;
use self::writer::Writer;
use super::link::Port;
use super::stack::{BUFFER_BYTES, CLIENT, FIRST_PORT, Role, SERVER, SERVER_PORT, Setting, Stack};

/// Offset of the payload: IPv4 and TCP headers without options.
const TEXT_AT: usize = 40;
const SCALE: u8 = 3;

/// The minimal stack: a port and one end of a connection.
pub(crate) struct Floor {
    port: Port,
    end: End,
}

enum End {
    Reads(Reader),
    Writes(Writer),
}

impl Floor {
    /// Makes the floor for `setting`.
    ///
    /// # Panics
    /// If `setting` has several connections or timestamps.
    pub(crate) fn new(setting: Setting) -> Self {
        assert!(setting.connections == 1 && !setting.timestamps, "one connection, no options");
        let end = match setting.role {
            Role::Reads => End::Reads(Reader::new(setting.reading)),
            Role::OpensAndWrites => End::Writes(Writer::new()),
        };
        Self { port: Port::new(setting.checksums, setting.takes_large), end }
    }
}

impl Stack for Floor {
    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn turn(&mut self, _now: Instant) {
        match &mut self.end {
            End::Reads(reader) => reader.turn(&mut self.port),
            End::Writes(writer) => writer.turn(&mut self.port),
        }
    }

    fn idle(&mut self, now: Instant) {
        self.turn(now);
    }

    fn read_bytes(&self) -> u64 {
        match &self.end {
            End::Reads(reader) => reader.read_bytes,
            End::Writes(_) => 0,
        }
    }
}

/// Writes the headers of a segment of `text_bytes`, from the server or to it. Returns the rest of `to`.
fn write_headers(to: &mut [u8], is_from_server: bool, text_bytes: usize, tcp: &TcpHeader<'_>) {
    let mut ends = [(CLIENT, FIRST_PORT), (SERVER, SERVER_PORT)];
    if is_from_server {
        ends.reverse();
    }
    let [(source, source_port), (destination, destination_port)] = ends;
    let window = (BUFFER_BYTES >> SCALE) as u16;
    let tcp = TcpHeader { source_port, destination_port, window, ..*tcp };
    let ip = Ipv4Header {
        source: source.into(),
        destination: destination.into(),
        protocol: PROTOCOL_TCP,
        payload_bytes: tcp.bytes() + text_bytes,
        ..Ipv4Header::default()
    };
    let segment = ip.write(to).expect("room for the headers");
    tcp.write(segment).expect("room for the headers");
}

/// Returns a TCP header with the fields that the floor sets.
fn header(seq: SeqNumber, ack: SeqNumber, flags: TcpFlags) -> TcpHeader<'static> {
    TcpHeader { seq, ack, flags, ..TcpHeader::default() }
}
