//! Turns any bytes into a script.
//!
//! Most events are the next segment of a flow, usually unchanged, because traffic that never merges tests little.

use core::num::NonZeroU16;

use rxo_frame::{Duration, LinkKind, Load, VlanTag};

use super::change::{changed, changed_outer};
use super::flow::Flow;
use super::maker::{Event, Maker, SETUP_BYTES};
use super::setup::POLICIES;
use super::{Form, Script, Setup, Step};
use crate::rules::HoldRule;
use crate::{Outer, Packet, arp, udp};

/// Payload sizes by number, in bytes. Numbers beyond the list mean the usual size; otherwise segments would
/// rarely merge.
const SIZES: [usize; 12] = [1, 50, 99, 101, 536, 536, 1448, 1448, 1448, 1448, 9000, 30_000];
const USUAL_SIZE: usize = 100;
const MOST_IN_RUN: u8 = 24;
const FLOWS: [u32; 8] = [1, 1, 2, 3, 4, 8, 40, 120];

const ECE: u16 = 0x040;
/// Number of the change that leaves a segment unchanged.
const NO_CHANGE: u8 = u8::MAX;

impl Event {
    /// Returns the payload length, in bytes.
    fn size(self) -> usize {
        SIZES.get(usize::from(self.count % 64)).copied().unwrap_or(USUAL_SIZE)
    }
}

impl Script {
    /// Makes the script that `bytes` encode; too few bytes give an empty one. The engine has memory for all
    /// its frames, so a lack of memory never ends an aggregate.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let begin = |head: [u8; SETUP_BYTES]| {
            let flows = FLOWS[usize::from(head[6] % 8)];
            (setup(head), (0..flows).map(|number| flow(number, head)).collect())
        };
        Maker::script(bytes, begin, Maker::<Flow>::event)
    }
}

/// Makes flow `number`. In scripts for UDP every second flow has datagrams; in scripts for tunnels two of
/// three are inside one.
fn flow(number: u32, [.., seed]: [u8; SETUP_BYTES]) -> Flow {
    let flow = Flow::new(number);
    let has_udp = matches!(seed % 8, 1 | 2 | 6);
    if has_udp && (number + u32::from(seed / 8)).is_multiple_of(2) {
        return flow.of_udp();
    }
    let has_tunnels = matches!(seed % 16, 10..=14);
    let is_inside = has_tunnels && (number + u32::from(seed / 16)) % 3 != 2;
    if is_inside { flow.in_tunnel() } else { flow }
}

fn setup(head: [u8; SETUP_BYTES]) -> Setup {
    let [policy, segments, bytes, flows, hold, switches, _, seed] = head;
    Setup {
        max_segments: [None, None, Some(1), Some(2), Some(3), Some(17)][usize::from(segments % 6)],
        max_bytes: [None, None, Some(1500), Some(9000)][usize::from(bytes % 4)],
        ..any_setup([policy, flows, hold, switches, seed])
    }
}

/// Chooses the settings that all kinds of scripts share: profile, number of flows, hold, link, checksums,
/// seed.
pub(super) fn any_setup([policy, flows, hold, switches, seed]: [u8; 5]) -> Setup {
    let forms = [Form::PseudoHeader, Form::Complete, Form::Verified];
    Setup {
        flows: [None, None, Some(1), Some(2), Some(3)][usize::from(flows % 5)],
        hold: match hold % 8 {
            2 => Some(HoldRule::Auto { budget: Duration::from_micros(50), polls: 8 }),
            3 => Some(HoldRule::Polls(2)),
            4 => Some(HoldRule::Polls(3)),
            5 => Some(HoldRule::Packets(5)),
            6 => Some(HoldRule::Time(Duration::from_micros(20))),
            7 => Some(HoldRule::EndOfPoll),
            _ => None,
        },
        merges_ce: choice(flows / 5),
        merges_ece: choice(flows / 40),
        any_id: choice(policy / 11),
        needs_df: choice(hold / 8),
        zero_echo: choice(hold / 16),
        udp: [None, Some(true), Some(true), None, None, None, None, Some(false)]
            [usize::from(seed % 8)],
        // Some configurations receive tunnel packets without parsing them.
        tunnels: matches!(seed % 16, 10..=12 | 14).then_some(true),
        link: if switches & 7 == 7 { LinkKind::RawIp } else { LinkKind::Ethernet },
        trusts_checksums: switches & 0x18 == 0x18,
        form: forms[usize::from(switches >> 5) % 3],
        seed: u64::from(seed),
        ..Setup::new(POLICIES[usize::from(policy) % POLICIES.len()])
    }
}

/// Puts the packet into the tunnel `outer`, if there is one. The event's change number selects a change of
/// the tunnel's headers.
fn within(packet: Packet, outer: Option<Outer>, event: Event) -> Packet {
    match outer {
        None => packet,
        Some(outer) => packet.within(changed_outer(outer, event.change, event.value)),
    }
}

/// Chooses an override, mostly `None`, which keeps the profile's own rule.
const fn choice(bits: u8) -> Option<bool> {
    match bits % 8 {
        3 => Some(true),
        4 => Some(false),
        _ => None,
    }
}

/// Chooses a load, mostly that of a busy receiver; `None` if the load has no effect.
pub(super) fn load_step(setup: &Setup, value: u8) -> Option<Step> {
    let Some(HoldRule::Auto { .. }) = setup.hold else { return None };
    Some(Step::Load(match value % 16 {
        0 => None,
        1 => Some(Load { unread: 0 }),
        _ => Some(Load { unread: value.into() }),
    }))
}

impl Maker<Flow> {
    fn event(&mut self, event: Event) {
        match event.kind % 64 {
            0..=44 => self.next_segment(event),
            45 => self.in_turn(event),
            46 | 47 => self.run(event),
            48 | 49 => self.pure_ack(event),
            50 => self.out_of_order(event),
            51 => self.repeat(usize::from(event.value) + 1),
            52 => self.damaged(event),
            53 => self.truncated(event),
            54 => self.other(event),
            55 => self.step(Step::Push),
            56..=58 => self.poll(event),
            59 => self.step(Step::EndOfPoll),
            60 => self.advance(event),
            61 => self.swap(),
            _ => self.step([Step::Flush, Step::Poll][usize::from(event.value > 40)]),
        }
    }

    fn link(&self) -> LinkKind {
        self.script.setup.link
    }

    fn next_segment(&mut self, event: Event) {
        let link = self.link();
        let len = event.size();
        let flow = self.flow(event);
        match event.change {
            60 => flow.ack = flow.ack.wrapping_add(1448),
            61 => flow.time = flow.time.wrapping_add(1),
            63 => flow.time = flow.time.wrapping_sub(1),
            64..=67 => flow.extension ^= 1,
            69..=71 => flow.traffic_class = 3,
            72..=77 => flow.traffic_class = 0,
            78 | 79 => flow.flags ^= ECE,
            80 => flow.echo ^= 77,
            81 => flow.dont_fragment = !flow.dont_fragment,
            _ => {}
        }
        let packet = changed(flow.segment(len, link), event.change, event.value);
        let packet = within(packet, flow.outer(), event);
        flow.advance(len);
        self.add(packet.frame());
        self.tag(event);
    }

    /// Adds several equal segments in a row, like a sender's burst of segments.
    fn run(&mut self, event: Event) {
        for _ in 0..event.value % MOST_IN_RUN {
            self.next_segment(Event { change: NO_CHANGE, ..event });
        }
    }

    /// Adds segments of a flow and pure ACKs of other flows in turn, as a host that sends and receives gets
    /// them. Some of the ACKs may belong to the same flow.
    fn in_turn(&mut self, event: Event) {
        for turn in 0..event.value % MOST_IN_RUN {
            let other = event.flow.wrapping_add(turn % 4 + event.count / 64 % 4);
            self.next_segment(Event { change: NO_CHANGE, ..event });
            self.pure_ack(Event { flow: other, change: NO_CHANGE, value: turn, ..event });
        }
    }

    /// Sets the VLAN tag that the device removed: usually the flow's own, sometimes another identifier or
    /// another priority.
    fn tag(&mut self, event: Event) {
        let usual = self.flow(event).device_tag();
        let tci = match event.change {
            62 => Some(u16::from(event.value % 3)),
            68 => usual.map(|tci| tci | 0x2000),
            _ => usual,
        };
        if let (Some(tci), Some(frame)) = (tci, self.script.all_frames.last_mut()) {
            frame.vlan = NonZeroU16::new(0x8100).map(|tpid| VlanTag { tpid, tci });
        }
    }

    fn pure_ack(&mut self, event: Event) {
        let link = self.link();
        let flow = self.flow(event);
        if event.value.is_multiple_of(2) {
            flow.ack = flow.ack.wrapping_add(2896);
        }
        let packet = changed(flow.segment(0, link), event.change, event.value);
        let packet = within(packet, flow.outer(), event);
        flow.id = flow.id.wrapping_add(1);
        self.add(packet.padded().frame());
    }

    /// Adds a segment from another position in the stream: earlier, later, or overlapping.
    fn out_of_order(&mut self, event: Event) {
        let link = self.link();
        let len = event.size();
        let distance = i32::from(event.value as i8) * 50;
        let flow = self.flow(event);
        let seq = flow.seq.wrapping_add(distance as u32);
        let packet = flow.segment(len, link).seq(seq);
        let packet = within(packet, flow.outer(), event);
        self.add(packet.frame());
    }

    /// Adds the flow's next segment with one byte of its header changed.
    fn damaged(&mut self, event: Event) {
        self.next_segment(Event { change: NO_CHANGE, ..event });
        if let Some(frame) = self.script.all_frames.last_mut() {
            let at = usize::from(event.change) % frame.bytes.len();
            frame.bytes[at] ^= event.value | 1;
        }
    }

    fn truncated(&mut self, event: Event) {
        self.next_segment(Event { change: NO_CHANGE, ..event });
        if let Some(frame) = self.script.all_frames.last_mut() {
            frame.bytes.truncate(usize::from(event.value));
        }
    }

    fn other(&mut self, event: Event) {
        let link = self.link();
        let flow = u32::from(event.flow);
        let frame = match event.value % 4 {
            0 => udp().flow(flow).frame(),
            1 => arp().padded().frame(),
            2 => udp().v6().flow(flow).fragment(1, true).frame(),
            _ => {
                let flow = self.flow(event);
                let packet = flow.segment(4344, link).already_aggregated(1448);
                within(packet, flow.outer(), event).frame()
            }
        };
        self.add(frame);
    }

    fn advance(&mut self, event: Event) {
        let time = Duration::from_nanos(u64::from(event.time) * u64::from(event.value) * 50);
        self.now = self.now + time;
        self.step(Step::Advance(time));
    }
}
