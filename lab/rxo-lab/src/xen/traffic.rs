//! The frames that arrive at the card: a bulk transfer, or single requests, on a clock that only they
//! advance.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use rxo::wire::build::{
    EthernetHeader, Ipv4Header, TcpHeader, timestamp_option, write_tcp_checksum,
};
use rxo::wire::checksum::Summer;
use rxo::wire::tcp::Timestamp;
use rxo::wire::{SeqNumber, TcpFlags};
use rxo::{ChecksumStatus, Frame, Instant};

/// Payload bytes of a segment with the timestamp option, for an MTU of 1,500.
pub(super) const SEGMENT_BYTES: usize = 1_448;
/// Time of a frame on the paper's link, which carries 60,000 per second.
pub(super) const FRAME_TIME: Duration = Duration::from_nanos(16_667);
/// Time of a frame on a link that is ten times as fast.
pub(super) const FAST_FRAME_TIME: Duration = Duration::from_nanos(1_667);
/// Frames per tick of the sender's timestamp clock, which ticks every millisecond.
const FRAMES_A_TICK: usize = 60;

/// The frames of one connection in order, each with the same payload length and a checksum verified by the
/// card.
pub(super) struct Traffic(Vec<Vec<u8>>);

impl Traffic {
    /// Makes `count` frames with `payload` bytes each.
    ///
    /// # Errors
    /// If `payload` does not fit into a frame.
    pub(super) fn new(count: usize, payload: usize) -> Result<Self> {
        (0..count).map(|number| frame(number, payload)).collect::<Result<_>>().map(Self)
    }

    /// Returns the `n`-th frame, which arrives after `n + 1` frame times.
    pub(super) fn frame(&self, n: usize) -> Frame<&[u8]> {
        self.frame_every(FRAME_TIME, n)
    }

    /// Returns the `n`-th frame on a link with this frame time.
    pub(super) fn frame_every(&self, frame_time: Duration, n: usize) -> Frame<&[u8]> {
        self.frame_at(n, Instant::ZERO + frame_time * (n as u32 + 1))
    }

    pub(super) fn frame_at(&self, n: usize, arrived_at: Instant) -> Frame<&[u8]> {
        let checksum = ChecksumStatus::Verified;
        Frame { checksum, ..Frame::new(&self.0[n][..], arrived_at) }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn frame(number: usize, payload: usize) -> Result<Vec<u8>> {
    let tick = 1_000 + (number / FRAMES_A_TICK) as u32;
    let options = timestamp_option(Timestamp { value: tick, echo: 1 });
    let tcp = TcpHeader {
        source_port: 40_000,
        destination_port: 5_001,
        seq: SeqNumber((number * payload) as u32),
        ack: SeqNumber(1),
        flags: TcpFlags::ACK,
        window: 500,
        options: &options,
        ..TcpHeader::default()
    };
    let ip = Ipv4Header {
        source: Ipv4Addr::new(10, 77, 0, 1),
        destination: Ipv4Addr::new(10, 77, 0, 2),
        protocol: 6,
        id: number as u16,
        payload_bytes: tcp.bytes() + payload,
        ..Ipv4Header::default()
    };
    let ethernet = EthernetHeader {
        destination: [0x52, 0x54, 0, 0, 0, 2],
        source: [0x52, 0x54, 0, 0, 0, 1],
        ethertype: 0x0800,
        ..EthernetHeader::default()
    };
    let mut bytes = vec![0; ethernet.bytes() + ip.bytes() + tcp.bytes() + payload];
    let segment = ip.write(ethernet.write(&mut bytes)?)?;
    let body = tcp.write(segment)?;
    body.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at + number) as u8);
    let segment = &mut bytes[ethernet.bytes() + ip.bytes()..];
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
    Ok(bytes)
}

/// The number of frames in each poll, with a given mean: 2.55 gives 2, 3, 2, 3 and so on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polls {
    frames_a_poll: f64,
    polls: u32,
}

impl Polls {
    /// Makes polls with a mean of `frames_a_poll`, which must be at least 1.
    pub(super) const fn new(frames_a_poll: f64) -> Self {
        Self { frames_a_poll, polls: 0 }
    }

    /// Returns the number of frames in the next poll.
    pub(super) fn next(&mut self) -> usize {
        let frames_by = |polls: u32| (f64::from(polls) * self.frames_a_poll) as usize;
        let before = frames_by(self.polls);
        self.polls += 1;
        frames_by(self.polls) - before
    }
}

#[cfg(test)]
mod tests {
    use rxo::wire::checksum::verify_transport;
    use rxo::wire::parse;

    use super::*;

    #[test]
    fn frames_are_those_of_one_connection_in_order() {
        let traffic = Traffic::new(3, SEGMENT_BYTES).unwrap();
        let mut next = 0;
        for n in 0..traffic.len() {
            let frame = traffic.frame(n);
            let parsed = parse(frame.bytes()).unwrap();
            assert!(verify_transport(&parsed, frame.bytes(), Summer::detect()));
            assert_eq!((frame.bytes().len(), parsed.payload_bytes()), (1_514, 1_448));
            let at = parsed.at.transport as usize + 4;
            let seq = u32::from_be_bytes(frame.bytes()[at..at + 4].try_into().unwrap());
            assert_eq!(seq, next);
            next += 1_448;
        }
    }

    #[test]
    fn polls_have_the_mean_that_is_asked_for() {
        for (mean, first) in [(1.0, [1, 1, 1]), (2.55, [2, 3, 2]), (32.0, [32; 3])] {
            let mut polls = Polls::new(mean);
            let frames: Vec<_> = (0..1_000).map(|_| polls.next()).collect();
            assert_eq!(frames[..3], first);
            assert!((frames.iter().sum::<usize>() as f64 / 1_000.0 - mean).abs() < 0.01);
            let least = mean.floor() as usize;
            assert!(frames.iter().all(|n| (least..=least + 1).contains(n)));
        }
    }
}
