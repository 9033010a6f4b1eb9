//! Delivers segments to the host, and checks those that leave.

use std::net::SocketAddr;

use rxo_frame::Instant;
use rxo_wire::{FlowKey, TcpFlags};

use super::flow::{Flow, timestamp};
use super::wire::{self, Seen, pattern_byte};
use super::{FAR, Runner, Wrong, seconds};
use crate::machine::{Packet, flow_key};
use crate::script::{Icmp, Mark, Segment, SegmentOption};

impl Runner {
    /// Delivers `segment` to the host.
    pub(super) fn give(&mut self, segment: &Segment) -> Result<(), Wrong> {
        let pair = flow_key(self.local(), self.remote());
        let flow = self.flow.get_or_insert_with(|| Flow::new(pair));
        let live = flow.live(segment);
        let from_peer = flow.pair.reversed();
        let packet = wire::build(&from_peer, &live, flow.offset_of(segment))
            .map_err(|error| Wrong::new("a segment that fits a packet", error.to_string()))?;
        self.machine.deliver(&packet);
        Ok(())
    }

    pub(super) fn give_icmp(&mut self, icmp: &Icmp) -> Result<(), Wrong> {
        let Some(flow) = &self.flow else {
            return Err(Wrong::new("a connection that the message is about", "none"));
        };
        let seq = flow.live_seq(icmp.seq.unwrap_or(0));
        let packet = super::icmp::build(&flow.pair, icmp, seq)?;
        self.machine.deliver(&packet);
        Ok(())
    }

    /// Waits for `expected` to leave, as one packet or as several that are joined like in packetdrill.
    /// `window` is the permitted time; `None` for any.
    pub(super) fn expect(
        &mut self,
        expected: &Segment,
        window: Option<(Instant, Instant)>,
    ) -> Result<(), Wrong> {
        let latest = window.map_or(self.machine.now() + FAR, |(_, latest)| latest + self.tolerance);
        let first = self.next_packet(expected, latest)?;
        let at = first.at;
        let (_, mut whole) = self.shown_as(&first, expected)?;
        while whole.text_bytes < expected.text_bytes {
            let next = self.next_packet(expected, latest).map_err(|Wrong { expected, got }| {
                Wrong { expected, got: format!("{whole}, then {got}") }
            })?;
            let (_, part) = self.shown_as(&next, expected)?;
            whole = join(&whole, &part, expected)?;
        }
        self.compare(expected, &whole)?;
        window.map_or(Ok(()), |window| self.check_time(at, window))
    }

    /// Returns the next packet that leaves by `latest`.
    ///
    /// # Errors
    /// If none leaves.
    fn next_packet(&mut self, expected: &Segment, latest: Instant) -> Result<Packet, Wrong> {
        loop {
            if let Some(packet) = self.machine.take_packet() {
                return Ok(packet);
            }
            if !self.step(latest)? {
                let until = seconds(latest.since(self.start));
                let got = format!("nothing leaves until {until} s");
                return Err(Wrong::new(expected.to_string(), got));
            }
        }
    }

    fn shown_as(
        &mut self,
        packet: &Packet,
        expected: &Segment,
    ) -> Result<(FlowKey, Segment), Wrong> {
        let unreadable =
            || Wrong::new(expected.to_string(), "a packet that is not whole, or not TCP");
        let Seen { key, segment, text } = wire::read(&packet.bytes).ok_or_else(unreadable)?;
        let flow = self.flow.get_or_insert_with(|| Flow::new(key));
        if flow.pair != key {
            let got = format!("a segment of another connection: {segment}");
            return Err(Wrong::new(expected.to_string(), got));
        }
        let shown = flow.scripted(&segment, expected);
        let begins = shown.seq.wrapping_sub(1);
        let is_pattern = text.iter().zip(0..).all(|(byte, at)| {
            *byte == pattern_byte(begins.wrapping_add(at)) || self.written.is_empty()
        });
        if !is_pattern {
            return Err(Wrong::new("the bytes that were written", format!("others in {shown}")));
        }
        Ok((key, shown))
    }

    /// Describes `packet` for a report.
    pub(super) fn shown(&mut self, packet: &Packet) -> String {
        let at = seconds(packet.at.since(self.start));
        match self.shown_as(packet, &Segment::default()) {
            Ok((_, segment)) => format!("{segment} at {at} s"),
            Err(wrong) => format!("{} at {at} s", wrong.got),
        }
    }

    fn check_time(&self, at: Instant, (first, last): (Instant, Instant)) -> Result<(), Wrong> {
        let is_early = at + self.tolerance < first;
        if !is_early && at <= last + self.tolerance {
            return Ok(());
        }
        let shown = |at: Instant| seconds(at.since(self.start));
        let expected = if first == last {
            format!("leaves at {} s", shown(first))
        } else {
            format!("leaves from {} to {} s", shown(first), shown(last))
        };
        Err(Wrong::new(expected, format!("leaves at {} s", shown(at))))
    }

    fn compare(&self, expected: &Segment, got: &Segment) -> Result<(), Wrong> {
        let options_agree = match (&expected.options, &got.options) {
            (Some(expected), Some(got)) => self.options_agree(expected, got),
            _ => true,
        };
        let agrees = expected.flags == got.flags
            && expected.seq == got.seq
            && expected.text_bytes == got.text_bytes
            && expected.ack == got.ack
            && expected.urgent == got.urgent
            && expected.window.is_none_or(|window| got.window == Some(window))
            && marks_agree(expected.ecn, got.ecn)
            && options_agree;
        if agrees {
            return Ok(());
        }
        // Hides the fields that the script leaves open.
        let mut shown = got.clone();
        shown.window = shown.window.filter(|_| expected.window.is_some());
        shown.ecn = shown.ecn.filter(|_| expected.ecn.is_some());
        Err(Wrong::new(expected.to_string(), shown.to_string()))
    }

    fn options_agree(&self, expected: &[SegmentOption], got: &[SegmentOption]) -> bool {
        let agree = |(expected, got): (&SegmentOption, &SegmentOption)| match (expected, got) {
            (
                SegmentOption::Timestamp { value, echo },
                SegmentOption::Timestamp { value: got_value, echo: got_echo },
            ) => echo == got_echo && self.timestamps_agree(*value, *got_value),
            (expected, got) => expected == got,
        };
        expected.len() == got.len() && expected.iter().zip(got).all(agree)
    }

    fn timestamps_agree(&self, expected: u32, got: u32) -> bool {
        let ticks = (expected.wrapping_sub(got) as i32).unsigned_abs();
        self.timestamp_tick.is_zero() || self.timestamp_tick * ticks <= self.tolerance
    }

    pub(super) fn local(&self) -> SocketAddr {
        SocketAddr::new(if self.is_v6 { LOCAL_V6.into() } else { LOCAL_V4.into() }, LOCAL_PORT)
    }

    pub(super) fn remote(&self) -> SocketAddr {
        SocketAddr::new(if self.is_v6 { REMOTE_V6.into() } else { REMOTE_V4.into() }, REMOTE_PORT)
    }
}

/// Joins two consecutive packets. `expected` is for the report if they are not consecutive.
fn join(first: &Segment, next: &Segment, expected: &Segment) -> Result<Segment, Wrong> {
    let follows = next.seq == first.seq.wrapping_add(first.text_bytes)
        && next.ack == first.ack
        && timestamp(next) == timestamp(first)
        && !first.flags.intersects(TcpFlags::FIN | TcpFlags::PSH)
        && next.text_bytes > 0;
    if !follows {
        return Err(Wrong::new(expected.to_string(), format!("{first}, then {next}")));
    }
    let text_bytes = first.text_bytes + next.text_bytes;
    let flags = first.flags | next.flags;
    Ok(Segment { text_bytes, flags, ..first.clone() })
}

fn marks_agree(expected: Option<Mark>, got: Option<Mark>) -> bool {
    match expected {
        None => true,
        Some(Mark::Capable) => matches!(got, Some(Mark::Capable0 | Mark::Capable1)),
        expected => got == expected,
    }
}

const LOCAL_V4: [u8; 4] = [192, 168, 0, 1];
const REMOTE_V4: [u8; 4] = [192, 0, 2, 1];
const LOCAL_V6: [u16; 8] = [0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1];
const REMOTE_V6: [u16; 8] = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1];
/// Port on which a script's servers listen, as in packetdrill.
const LOCAL_PORT: u16 = 8080;
const REMOTE_PORT: u16 = 40_000;
