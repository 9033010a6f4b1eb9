//! Writes synthetic captures for the benchmark: plain pcap, with the same bytes every time.
//!
//! They do not come from the project's own writer, so that the measured input does not depend on it. All
//! checksums are right.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

const LINK_BYTES: usize = 14;
const IP_BYTES: usize = 20;
/// Bytes of a TCP header with the timestamp option.
const TCP_BYTES: usize = 32;
const HEADER_BYTES: usize = LINK_BYTES + IP_BYTES + TCP_BYTES;
const RECORD_BYTES: usize = 16;

/// Number of flows in the capture of full-size segments.
const FULL_FLOWS: u32 = 16;
const FULL_PAYLOAD: usize = 1_448;
/// Segments that a sender passes to its network card at once; the last has the PSH flag.
const RUN: u32 = 45;

/// Writes about `bytes` of full-size segments, in which 16 flows take turns with 45 segments each. Returns
/// the number of packets.
pub(in super::super) fn full_size(path: &Path, bytes: u64) -> Result<u64> {
    bulk(path, bytes, FULL_PAYLOAD)
}

/// Writes about `bytes` of packets of 100 bytes (with the link header), otherwise like [`full_size`].
pub(super) fn small(path: &Path, bytes: u64) -> Result<u64> {
    bulk(path, bytes, 100 - HEADER_BYTES)
}

fn bulk(path: &Path, bytes: u64, payload_bytes: usize) -> Result<u64> {
    let packet_bytes = (RECORD_BYTES + HEADER_BYTES + payload_bytes) as u64;
    let packets = bytes / packet_bytes;
    let mut writer = Writer::create(path, payload_bytes)?;
    let mut sent = vec![0_u32; FULL_FLOWS as usize];
    for index in 0..packets {
        let run = index as u32 / RUN;
        let flow = run % FULL_FLOWS;
        let is_last = (index as u32 + 1).is_multiple_of(RUN);
        let number = &mut sent[flow as usize];
        // 10 Gb/s: about 1.2 us for each packet.
        writer.packet(flow, *number, is_last, index * 1_200)?;
        *number += 1;
    }
    writer.finish()?;
    Ok(packets)
}

/// Writes two packets of each of `flows` flows: one of every flow, then the second of every flow.
pub(super) fn many_flows(path: &Path, flows: u32) -> Result<u64> {
    const PAYLOAD: usize = 64;
    let mut writer = Writer::create(path, PAYLOAD)?;
    for index in 0..u64::from(flows) * 2 {
        let (flow, number) = (index as u32 % flows, index as u32 / flows);
        writer.packet(flow, number, false, index * 1_000)?;
    }
    writer.finish()?;
    Ok(u64::from(flows) * 2)
}

struct Writer {
    file: BufWriter<File>,
    record: Vec<u8>,
    /// Checksum sum of the TCP segment with its variable fields 0, pseudo-header included.
    fixed_sum: u64,
    payload_bytes: usize,
}

impl Writer {
    fn create(path: &Path, payload_bytes: usize) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        // pcap's file header: nanoseconds, version 2.4, snap length 262,144, Ethernet.
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
            file.write_all(&word.to_le_bytes())?;
        }
        let record = template(payload_bytes);
        let fixed_sum = fixed_sum(&record);
        Ok(Self { file, record, fixed_sum, payload_bytes })
    }

    /// Writes segment `number` of `flow` with the time `at_ns` after the beginning.
    fn packet(&mut self, flow: u32, number: u32, is_pushed: bool, at_ns: u64) -> Result<()> {
        let seconds = 1_700_000_000 + (at_ns / 1_000_000_000) as u32;
        let nanos = (at_ns % 1_000_000_000) as u32;
        self.record[0..4].copy_from_slice(&seconds.to_le_bytes());
        self.record[4..8].copy_from_slice(&nanos.to_le_bytes());
        let frame = &mut self.record[RECORD_BYTES..];
        let seq = number.wrapping_mul(self.payload_bytes as u32);
        let stamp = (at_ns / 1_000_000) as u32;
        put(frame, 18, &(number as u16).to_be_bytes());
        put(frame, 26, &[10, (flow >> 16) as u8, (flow >> 8) as u8, flow as u8]);
        put(frame, 38, &seq.to_be_bytes());
        frame[47] = if is_pushed { 0x18 } else { 0x10 };
        put(frame, 58, &stamp.to_be_bytes());
        put(frame, 24, &[0, 0]);
        let ip = checksum(sum(&frame[LINK_BYTES..LINK_BYTES + IP_BYTES]));
        put(frame, 24, &ip.to_be_bytes());
        let varying = sum(&frame[26..30])
            + u64::from(seq >> 16)
            + u64::from(seq & 0xffff)
            + u64::from(frame[47])
            + u64::from(stamp >> 16)
            + u64::from(stamp & 0xffff);
        put(frame, 50, &checksum(self.fixed_sum + varying).to_be_bytes());
        self.file.write_all(&self.record)?;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.file.flush()?;
        Ok(())
    }
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns a record with the bytes that are equal in every packet; the others are 0.
fn template(payload_bytes: usize) -> Vec<u8> {
    let frame_bytes = HEADER_BYTES + payload_bytes;
    let mut record = vec![0; RECORD_BYTES + frame_bytes];
    put(&mut record, 8, &(frame_bytes as u32).to_le_bytes());
    put(&mut record, 12, &(frame_bytes as u32).to_le_bytes());
    let frame = &mut record[RECORD_BYTES..];
    put(frame, 0, &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
    put(frame, 16, &((frame_bytes - LINK_BYTES) as u16).to_be_bytes());
    // DF, TTL 64, TCP; the destination 192.0.2.1; ports 5001 and 443.
    put(frame, 20, &[0x40, 0, 64, 6]);
    put(frame, 30, &[192, 0, 2, 1]);
    put(frame, 34, &[0x13, 0x89, 0x01, 0xbb]);
    // ACK 1, eight words of header, window 512; then NOP, NOP and the timestamp option.
    put(frame, 42, &[0, 0, 0, 1, 0x80, 0, 2, 0]);
    put(frame, 54, &[1, 1, 8, 10]);
    let mut state = 1_u32;
    for byte in &mut frame[HEADER_BYTES..] {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    record
}

fn fixed_sum(record: &[u8]) -> u64 {
    let frame = &record[RECORD_BYTES..];
    let segment = &frame[LINK_BYTES + IP_BYTES..];
    // The pseudo-header: destination, protocol and length. The source address varies and is added for each
    // packet.
    sum(segment) + sum(&frame[30..34]) + 6 + segment.len() as u64
}

/// Returns the sum of the 16-bit words; an odd last byte is the high byte of a word.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|word| match word {
        [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        _ => 0,
    });
    words.sum()
}

fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_right() {
        let folder = std::env::temp_dir().join(format!("rxo-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("few.pcap");
        for payload_bytes in [FULL_PAYLOAD, 100 - HEADER_BYTES] {
            let packets = bulk(&path, 200_000, payload_bytes).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let records: Vec<&[u8]> =
                bytes[24..].chunks(RECORD_BYTES + HEADER_BYTES + payload_bytes).collect();
            assert_eq!(records.len() as u64, packets);
            for record in records {
                let frame = &record[RECORD_BYTES..];
                assert_eq!(checksum(sum(&frame[14..34])), 0, "IP");
                let pseudo = sum(&frame[26..34]) + 6 + (frame.len() - 34) as u64;
                assert_eq!(checksum(sum(&frame[34..]) + pseudo), 0, "TCP");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
