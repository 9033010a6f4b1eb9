//! A group driven by arbitrary bytes: receivers join, pause, lose segments, and send segments that follow no
//! rule.

use rxo_frame::Duration;
use rxo_tcp::{Ecn, GroupConfig, Late, Outcome, Repairs, SegmentOptions, Slow};
use rxo_wire::TcpFlags;
use rxo_wire::tcp::{SackBlock, Timestamp};

use super::room::{Room, group_config, receiver_config};
use super::wire::Wire;

/// Plays the script `data`: the first bytes are settings, the others are events. In the end the network
/// works.
///
/// # Panics
/// Panics if a receiver reads anything but the stream, the group keeps more text than its buffer holds, the
/// cast does not end, or a receiver that followed the rules does not get everything.
pub(crate) fn run(data: &[u8]) {
    let mut script = Script(data.iter());
    let (mut room, receivers) = open(&mut script);
    // A receiver that broke a rule counts as hostile; one that was absent for long may be ejected.
    let mut is_hostile = [false; MOST_RECEIVERS];
    let mut away = [Duration::ZERO; MOST_RECEIVERS];
    room.begin();
    while let Some(step) = script.next() {
        let number = usize::from(script.byte()) % room.receivers.len();
        match step % 8 {
            0 | 1 => {
                is_hostile[number] = true;
                room.arrives(number, said(&room, number, &mut script));
            }
            2 | 3 => {
                let time = script.time();
                away[number] += time;
                let stops = if step % 8 == 2 { stop_reading } else { stay_away };
                stops(&mut room, number, time);
            }
            4 => room.links.loss = u64::from(script.byte()) % MOST_LOSS,
            5 if room.receivers.len() < MOST_RECEIVERS => _ = room.come(receiver_config()),
            _ => pass(&mut room, script.time()),
        }
        check_bounds(&room);
    }
    room.links.loss = 0;
    room.finish();
    check_bounds(&room);
    let keeps_to_the_rules = |number: &usize| !is_hostile[*number] && away[*number] < TIMEOUT / 10;
    for number in (0..receivers).filter(keeps_to_the_rules) {
        let (side, receiver) = (&room.sides[number], &room.receivers[number]);
        assert_eq!(side.outcome, Some(Outcome::Done), "receiver {number}");
        assert_eq!(receiver.read, room.stream.len(), "receiver {number}");
    }
}

fn open(script: &mut Script<'_>) -> (Room, usize) {
    let settings = script.byte();
    let late = if settings & 1 == 0 { Late::Refuse } else { Late::CatchUp };
    let repairs = match settings & 18 {
        0 => Repairs::Each,
        2 => Repairs::Group { least: 2 },
        _ => Repairs::Parity,
    };
    let buffer_bytes = if settings & 4 == 0 { 1 << 20 } else { 64 << 10 };
    let slow = Slow::Eject(TIMEOUT);
    let config = GroupConfig { late, repairs, buffer_bytes, slow, ..group_config() };
    let receivers = 1 + usize::from(settings >> 5);
    let mut room = Room::new(config, receivers, usize::from(script.byte()) * 2_000);
    room.is_sleepless = settings & 8 != 0;
    room.links.random = script.byte().into();
    (room, receivers)
}

/// Returns a segment of receiver `number`, or of a stranger with its addresses: close to a valid one, or far
/// from it.
fn said(room: &Room, number: usize, script: &mut Script<'_>) -> Wire {
    let receiver = room.receivers[number].tcp.statistics();
    let sender = room.sides[number].tcp.statistics();
    let flags = [
        TcpFlags::ACK,
        TcpFlags::ACK,
        TcpFlags::ACK,
        TcpFlags::ACK | TcpFlags::FIN,
        TcpFlags::ACK | TcpFlags::ECE,
        TcpFlags::RST,
        TcpFlags::SYN,
        TcpFlags::ACK | TcpFlags::URG,
    ];
    let what = script.byte();
    let ack = sender.snd_una + script.offset();
    let value = if what & 64 == 0 { u32::MAX / 4 } else { script.word() << 16 };
    let mut options = SegmentOptions {
        timestamp: (what & 8 == 0).then_some(Timestamp { value, echo: script.word() }),
        ..SegmentOptions::default()
    };
    if what & 16 != 0 {
        let start = ack + script.offset();
        options.sack.push(SackBlock { start, end: start + script.word() });
    }
    Wire {
        seq: receiver.snd_nxt + if what & 32 == 0 { 0 } else { script.offset() },
        ack,
        flags: flags[usize::from(what % 8)],
        window: script.word() as u16,
        options,
        text: vec![what; usize::from(script.byte() % 8)],
        ecn: Ecn::NotCapable,
    }
}

/// Lets `time` pass while receiver `number` reads nothing.
fn stop_reading(room: &mut Room, number: usize, time: Duration) {
    room.receivers[number].reads_at_most = room.receivers[number].read;
    pass(room, time);
    room.receivers[number].reads_at_most = usize::MAX;
    room.read_again(number);
}

/// Lets `time` pass while no segment reaches receiver `number` or leaves it.
fn stay_away(room: &mut Room, number: usize, time: Duration) {
    room.receivers[number].absent_until = room.now + time;
    pass(room, time);
}

fn pass(room: &mut Room, time: Duration) {
    let until = room.now + time;
    room.run_until(|room| room.now >= until);
}

/// Checks that text not acknowledged by all fits the group's buffer. A receiver that catches up has a buffer
/// of its own.
fn check_bounds(room: &Room) {
    let (progress, config) = (room.group.progress(), room.group.config());
    let kept = progress.sent - progress.slowest;
    let is_known =
        progress.receivers > 0 && progress.catching_up == 0 && config.late == Late::Refuse;
    assert!(!is_known || kept <= config.buffer_bytes.into(), "{kept} bytes of text are kept");
}

/// The bytes that make the decisions; zeros when they have run out.
struct Script<'a>(core::slice::Iter<'a, u8>);

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn word(&mut self) -> u32 {
        u32::from(self.byte()) << 8 | u32::from(self.byte())
    }

    /// Returns a distance of sequence numbers, mostly small, in either direction.
    fn offset(&mut self) -> u32 {
        let word = self.word();
        match word >> 14 {
            0 => 0,
            1 => word & 0xfff,
            2 => (word & 0xfff).wrapping_neg(),
            _ => word << 17,
        }
    }

    /// Returns a time up to 2.55 s.
    fn time(&mut self) -> Duration {
        Duration::from_millis(u64::from(self.byte()) * 10)
    }
}

/// Timeouts double: a receiver absent for a tenth of this time is repaired before it ends, even if some
/// repairs are lost.
const TIMEOUT: Duration = Duration::from_secs(100);
const MOST_RECEIVERS: usize = 12;
/// The largest number of lost segments per 1000.
const MOST_LOSS: u64 = 60;
