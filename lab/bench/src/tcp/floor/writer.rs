//! The writing end: copies the application's data to a ring, and from there to segments.

use rxo_frame::{Gso, GsoKind};
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use super::{TEXT_AT, header, write_headers};
use crate::tcp::link::{MTU, Port};
use crate::tcp::stack::{BUFFER_BYTES, CALL_BYTES};

const SEGMENT_BYTES: usize = MTU - TEXT_AT;
/// Payload bytes of a GSO frame, in whole segments.
const LARGE_BYTES: usize = (u16::MAX as usize - TEXT_AT) / SEGMENT_BYTES * SEGMENT_BYTES;
const ISS: SeqNumber = SeqNumber(1);

/// Bytes of SEG.SEQ in a packet with an IPv4 and a TCP header without options.
const SEQ_AT: std::ops::Range<usize> = 24..28;

pub(super) struct Writer {
    application: Vec<u8>,
    ring: Vec<u8>,
    /// Headers of every segment, complete except SEG.SEQ. The reader checks neither lengths nor checksums.
    headers: [u8; TEXT_AT],
    /// Bytes acknowledged, sent and written, without the SYN; `None` before the SYN.
    bytes: Option<Progress>,
}

#[derive(Default)]
struct Progress {
    acknowledged: u32,
    sent: u32,
    written: u32,
}

impl Writer {
    pub(super) fn new() -> Self {
        let (application, ring) = (vec![1; CALL_BYTES], vec![0; BUFFER_BYTES]);
        let mut headers = [0; TEXT_AT];
        let tcp = header(ISS + 1, SeqNumber(8), TcpFlags::ACK);
        write_headers(&mut headers, false, SEGMENT_BYTES, &tcp);
        Self { application, ring, headers, bytes: None }
    }

    pub(super) fn turn(&mut self, port: &mut Port) {
        let Some(bytes) = &mut self.bytes else {
            port.send(TEXT_AT, |to| {
                write_headers(to, false, 0, &header(ISS, SeqNumber(0), TcpFlags::SYN));
            });
            self.bytes = Some(Progress::default());
            return;
        };
        while let Some(frame) = port.received.pop_front() {
            let parsed = parse_ip(frame.bytes()).expect("a packet of the reader");
            let Transport::Tcp(tcp) = parsed.transport else { panic!("the reader sends TCP") };
            bytes.acknowledged = (tcp.ack - (ISS + 1)) as u32;
        }
        let Self { application, ring, headers, .. } = self;
        write(application, ring, bytes);
        let most = if port.takes_large { LARGE_BYTES } else { SEGMENT_BYTES };
        while bytes.written != bytes.sent {
            send(ring, headers, most, bytes, port);
        }
    }
}

/// Fills the ring with the application's data.
fn write(application: &[u8], ring: &mut [u8], bytes: &mut Progress) {
    let mut room = ring.len() - bytes.written.wrapping_sub(bytes.acknowledged) as usize;
    while room > 0 {
        let at = bytes.written as usize % ring.len();
        let now = room.min(application.len()).min(ring.len() - at);
        ring[at..at + now].copy_from_slice(&application[..now]);
        bytes.written = bytes.written.wrapping_add(now as u32);
        room -= now;
    }
}

/// Sends a segment, or a GSO frame, of at most `most` payload bytes.
fn send(ring: &[u8], headers: &[u8; TEXT_AT], most: usize, bytes: &mut Progress, port: &mut Port) {
    let at = bytes.sent as usize % ring.len();
    let text = &ring[at..];
    let text = &text[..text.len().min(most).min(bytes.written.wrapping_sub(bytes.sent) as usize)];
    let fill = |to: &mut [u8]| {
        to[..TEXT_AT].copy_from_slice(headers);
        let SeqNumber(seq) = ISS + 1 + bytes.sent;
        to[SEQ_AT].copy_from_slice(&seq.to_be_bytes());
        to[TEXT_AT..].copy_from_slice(text);
    };
    if text.len() > SEGMENT_BYTES {
        let size = (SEGMENT_BYTES as u16).try_into().expect("a size");
        let gso = Gso::new(GsoKind::TcpV4, size);
        port.send_large(TEXT_AT + text.len(), gso, fill);
    } else {
        port.send(TEXT_AT + text.len(), fill);
    }
    bytes.sent = bytes.sent.wrapping_add(text.len() as u32);
}
