//! The reading end: copies the payload of each segment to the application.

use rxo_wire::build::{TcpHeader, maximum_segment_size_option};
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use super::{SCALE, TEXT_AT, header, write_headers};
use crate::tcp::link::{Buffer, MTU, Port};
use crate::tcp::stack::{CALL_BYTES, Reading, look_at};

const ISS: SeqNumber = SeqNumber(7);

pub(super) struct Reader {
    /// The next expected sequence number; `None` before the SYN.
    nxt: Option<SeqNumber>,
    reading: Reading,
    application: Vec<u8>,
    pub(super) read_bytes: u64,
}

impl Reader {
    pub(super) fn new(reading: Reading) -> Self {
        Self { nxt: None, reading, application: vec![0; CALL_BYTES], read_bytes: 0 }
    }

    pub(super) fn turn(&mut self, port: &mut Port) {
        let mut at = 0;
        while let Some(frame) = port.received.pop_front() {
            let Some(nxt) = &mut self.nxt else {
                self.nxt = Some(open(&frame.bytes, port));
                continue;
            };
            let text = &frame.bytes()[TEXT_AT..];
            match self.reading {
                Reading::InPlace => look_at(text),
                Reading::Copied => {
                    at = if at + text.len() > CALL_BYTES { 0 } else { at };
                    self.application[at..at + text.len()].copy_from_slice(text);
                    at += text.len();
                }
            }
            *nxt = *nxt + text.len() as u32;
            self.read_bytes += text.len() as u64;
        }
        if let Some(nxt) = self.nxt {
            answer(&header(ISS + 1, nxt, TcpFlags::ACK), port);
        }
    }
}

/// Answers the SYN. Returns the next expected sequence number.
fn open(packet: &Buffer, port: &mut Port) -> SeqNumber {
    let parsed = parse_ip(packet.as_ref()).expect("a packet of the generator");
    let Transport::Tcp(tcp) = parsed.transport else { panic!("the peer sends TCP") };
    let nxt = tcp.seq + 1;
    let options = [&maximum_segment_size_option((MTU - TEXT_AT) as u16)[..], &[1, 3, 3, SCALE]];
    let options = &options.concat();
    let tcp = TcpHeader { options, ..header(ISS, nxt, TcpFlags::SYN | TcpFlags::ACK) };
    answer(&tcp, port);
    nxt
}

fn answer(tcp: &TcpHeader<'_>, port: &mut Port) {
    let bytes = TEXT_AT + tcp.options.len();
    port.send(bytes, |to| write_headers(to, true, 0, tcp));
}
