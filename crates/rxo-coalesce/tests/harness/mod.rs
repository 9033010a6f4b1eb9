//! Runs a script on the engine and records its deliveries.
//!
//! The only module that uses both the test kit and the engine's types; the fuzz targets use it too.

pub(crate) mod settings;

use std::collections::BTreeMap;

use rxo_coalesce::{
    Acks, Aggregate, BypassReason, ChecksumForm, Counters, Deliveries, Delivery, Engine,
    FlushReason, IdPattern, Kind, MAX_HEADER_BYTES, OwnedDelivery, Policy,
};
use rxo_frame::{Frame, FrameBuffer, Gather, GsoTunnel, Instant, Load};
use rxo_testkit::naive::Reading;
use rxo_testkit::oracle::Why;
use rxo_testkit::promise::{AckSaid, Merged, Observed, Record, Shown, ShownAcks};
use rxo_testkit::script::{Script, Step};
use rxo_wire::tcp::AckRecord;
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{FlowKey, Offsets, parse, parse_ip};
use settings::config;

/// The TCP flag ACK, and the ECN flags ECE, CWR and AE.
const ACK: u16 = 0x010;
const ECN_FLAGS: u16 = 0x1c0;

/// A buffer with the number of its frame in the script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: usize,
    bytes: Vec<u8>,
}

impl AsRef<[u8]> for Numbered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FrameBuffer for Numbered {}

/// Runs `script` and a final flush.
pub(crate) fn run(script: &Script) -> Observed {
    run_changing(script, &[])
}

/// A change of the policy before the step with this number; the function returns the new policy.
pub(crate) type Change = (usize, Box<dyn Fn(Policy) -> Policy>);

/// Runs `script` and a final flush, and changes the policy as `changes` say.
pub(crate) fn run_changing(script: &Script, changes: &[Change]) -> Observed {
    let mut run = Run {
        script,
        engine: Engine::new(config(&script.setup)).expect("numbers in range"),
        batch: Vec::new(),
        now: Instant::ZERO,
        load: None,
    };
    let (mut steps, mut reasons) = (Vec::new(), Vec::new());
    for (number, step) in script.steps.iter().chain(&[Step::Flush]).enumerate() {
        let before = totals(run.engine.counters());
        let due = changes.iter().filter(|(step, _)| *step == number);
        let mut shown: Vec<_> = due.flat_map(|(_, next)| run.change(next)).collect();
        shown.extend(run.step(step));
        steps.push(shown);
        reasons.push(between(&before, &totals(run.engine.counters())));
    }
    assert!(run.engine.is_idle(), "after a flush something is held");
    let counters = run.engine.counters();
    let data = counters.singles + counters.aggregated_segments;
    let acks = counters.ack_singles + counters.aggregated_acks;
    let delivered = counters.bypassed_total() + data + acks;
    assert_eq!(delivered, script.frame_count() as u64, "every frame is counted once");
    assert_eq!(counters.frames, delivered);
    let observed = Observed { steps, reasons };
    assert_eq!(counters.deliveries, observed.deliveries().count() as u64);
    observed
}

/// Returns the count of each reason so far.
pub(crate) fn totals(counters: &Counters) -> Vec<(Why, u64)> {
    let bypassed = |reason: &BypassReason| (Why::Bypass(reason.name()), counters.bypassed(*reason));
    let flushed = |reason: &FlushReason| (Why::Flush(reason.name()), counters.flushed(*reason));
    BypassReason::ALL.iter().map(bypassed).chain(FlushReason::ALL.iter().map(flushed)).collect()
}

/// Returns the increase of the count of each reason between two times, without zeros.
pub(crate) fn between(before: &[(Why, u64)], now: &[(Why, u64)]) -> BTreeMap<Why, u64> {
    let counts = now.iter().zip(before).map(|((why, now), (_, before))| (*why, now - before));
    counts.filter(|(_, count)| *count != 0).collect()
}

struct Run<'a> {
    script: &'a Script,
    engine: Engine<Numbered>,
    batch: Vec<Frame<Numbered>>,
    now: Instant,
    load: Option<Load>,
}

impl Run<'_> {
    /// Changes the policy. The frames in the batch are not received yet.
    fn change(&mut self, next: &dyn Fn(Policy) -> Policy) -> Vec<Shown> {
        let policy = next(self.engine.config().policy);
        let (script, now, mut out) = (self.script, self.now, Vec::new());
        let sink = |deliveries: Deliveries<'_, Numbered>| note(script, deliveries, now, &mut out);
        self.engine.change_policy(policy, now, sink).expect("numbers in range");
        assert!(self.engine.is_idle(), "something is held under a policy that is gone");
        assert_eq!(self.engine.config().policy, policy);
        out
    }

    fn step(&mut self, step: &Step) -> Vec<Shown> {
        let (script, now) = (self.script, self.now);
        let mut out = Vec::new();
        let mut sink =
            |deliveries: Deliveries<'_, Numbered>| note(script, deliveries, now, &mut out);
        match step {
            Step::Frame(number) => self.batch.push(numbered(script.frame(*number), *number)),
            Step::Push => self.engine.push(&mut self.batch, now, sink),
            // A poll without frames only ends.
            Step::EndOfPoll if self.load.is_some() => {
                self.engine.poll_under(self.load, &mut Vec::new(), now, sink);
            }
            Step::EndOfPoll => self.engine.end_of_poll(now, sink),
            Step::Poll => self.engine.poll_under(self.load, &mut self.batch, now, sink),
            Step::Load(load) => self.load = *load,
            Step::Flush => {
                self.engine.push(&mut self.batch, now, &mut sink);
                self.engine.flush(now, sink);
            }
            Step::Advance(time) => return self.advance(now + *time),
        }
        out
    }

    /// Advances time as a caller must: reports the load to the engine, and calls it at each deadline.
    fn advance(&mut self, until: Instant) -> Vec<Shown> {
        let mut out = Vec::new();
        let (script, now) = (self.script, self.now);
        self.engine
            .on_timeout_under(self.load, now, |deliveries| note(script, deliveries, now, &mut out));
        while let Some(deadline) = self.engine.poll_at().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            let now = self.now;
            self.engine.on_timeout(now, |deliveries| note(script, deliveries, now, &mut out));
            let next = self.engine.poll_at();
            assert!(next.is_none_or(|next| next > now), "{next:?} is still due at {now:?}");
        }
        self.now = until;
        out
    }
}

pub(crate) fn numbered(frame: &Frame<Vec<u8>>, number: usize) -> Frame<Numbered> {
    Frame {
        bytes: Numbered { number, bytes: frame.bytes.clone() },
        arrived_at: frame.arrived_at,
        checksum: frame.checksum,
        gso: frame.gso,
        vlan: frame.vlan,
    }
}

/// Records the views of `deliveries`, then takes the frames and compares them with the script's.
pub(crate) fn note(
    script: &Script,
    deliveries: Deliveries<'_, Numbered>,
    now: Instant,
    out: &mut Vec<Shown>,
) {
    let before = out.len();
    assert_eq!(deliveries.len(), deliveries.iter().count());
    deliveries.iter().for_each(|delivery| check_view(script, delivery));
    out.extend(deliveries.iter().map(|delivery| shown(delivery, now)));
    let shown: Vec<usize> = out[before..].iter().flat_map(|shown| shown.frames.clone()).collect();
    let mut taken = Vec::new();
    let mut take = |frame: &Frame<Numbered>| {
        let number = frame.bytes.number;
        assert_eq!(*frame, numbered(script.frame(number), number), "frame {number} was changed");
        taken.push(number);
    };
    match script.setup.seed % 4 {
        0 => deliveries.into_frames().for_each(|frame| take(&frame)),
        1 => take_one_by_one(script, deliveries, take),
        2 => {
            for (owned, shown) in deliveries.into_owned().zip(&out[before..]) {
                take_owned(script, owned, (shown, now), &mut take);
            }
        }
        _ => take_into_one(script, deliveries, (&out[before..], now), take),
    }
    assert_eq!(taken, shown, "frames taken (left) are not the frames shown (right)");
}

/// Takes the frames of an owned delivery, whose view must equal that of the engine.
fn take_owned(
    script: &Script,
    owned: OwnedDelivery<Numbered>,
    (shows, now): (&Shown, Instant),
    take: &mut impl FnMut(&Frame<Numbered>),
) {
    check_view(script, owned.view());
    assert_eq!(shown(owned.view(), now), *shows, "owned (left) is not what was shown (right)");
    owned.into_frames().for_each(|frame| take(&frame));
}

/// Takes all deliveries into the memory of one owned delivery. The frames are read from the views.
fn take_into_one(
    script: &Script,
    mut deliveries: Deliveries<'_, Numbered>,
    (shows, now): (&[Shown], Instant),
    mut take: impl FnMut(&Frame<Numbered>),
) {
    let mut owned = OwnedDelivery::default();
    let mut shows = shows.iter();
    while let Some(delivery) = deliveries.take_next() {
        let is_intact = delivery.is_intact();
        delivery.store_in(&mut owned);
        check_view(script, owned.view());
        assert_eq!((Some(&shown(owned.view(), now)), owned.is_intact()), (shows.next(), is_intact));
        owned.view().frames().for_each(&mut take);
    }
}

/// Takes the deliveries one by one, and checks the checksums of those that are marked as intact.
fn take_one_by_one(
    script: &Script,
    mut deliveries: Deliveries<'_, Numbered>,
    mut take: impl FnMut(&Frame<Numbered>),
) {
    while let Some(delivery) = deliveries.take_next() {
        let is_intact = delivery.is_intact();
        for frame in delivery.into_frames() {
            take(&frame);
            let trusted = script.setup.trusts_checksums || frame.checksum.is_trusted();
            if is_intact && !trusted {
                let reading = script.reading(frame.bytes.number);
                let (Reading::Segment(segment) | Reading::Datagram(segment)) = reading else {
                    panic!("no segment is intact")
                };
                assert!(segment.checksum_ok && segment.ip_checksum_ok);
                assert!(segment.outer.is_none_or(|outer| outer.checksum_ok));
            }
        }
    }
}

/// Asserts that kind, offsets and flow of a delivery equal those parsed from its last frame.
fn check_view(script: &Script, delivery: Delivery<'_, Numbered>) {
    let frame = delivery.frames().last().expect("a delivery has frames");
    let said = (delivery.kind(), delivery.offsets(), delivery.flow_key());
    let reading = script.reading(frame.bytes.number);
    let segment = match reading {
        Reading::Segment(segment) if segment.outer.is_some() && delivery.frame_count() == 1 => {
            return assert_eq!(said, (Kind::Other, None, None));
        }
        Reading::Segment(segment) if segment.transport_at <= 255 => segment,
        Reading::Datagram(segment) if delivery.frame_count() > 1 => segment,
        _ => return assert_eq!(said, (Kind::Other, None, None)),
    };
    let payload_at = segment.payload_at;
    let kind = match (segment.payload.len(), segment.flags & !ECN_FLAGS) {
        _ if segment.udp_length.is_some() => Kind::Datagrams,
        (0, ACK) => Kind::PureAck,
        (0, _) => Kind::Other,
        _ => Kind::Data,
    };
    let offsets = Offsets {
        network: segment.network_at as u32,
        transport: segment.transport_at as u32,
        payload: payload_at as u32,
        end: (payload_at + segment.payload.len()) as u32,
    };
    let parsed = script.setup.link.read(frame.bytes(), parse, parse_ip);
    let parsed = parsed.expect("a segment that can be read");
    let device_vlan =
        |key: FlowKey| frame.vlan.map_or(key, |tag| key.on_device_vlan(tag.tci & 0x0fff));
    let key = match Tunnel::of_port(parsed.key.destination_port()) {
        Some(tunnel) if segment.outer.is_some() => {
            tunnel.inside(frame.bytes(), &parsed).expect("a packet inside").parsed.key
        }
        _ => device_vlan(parsed.key),
    };
    assert_eq!(said, (kind, Some(offsets), Some(key)));
}

fn shown(delivery: Delivery<'_, Numbered>, at: Instant) -> Shown {
    let frames: Vec<usize> = delivery.frames().map(|frame| frame.bytes.number).collect();
    assert_eq!(delivery.frame_count(), frames.len());
    let (merged, acks, reason) = match delivery {
        Delivery::Frame(_) => (None, None, None),
        Delivery::Aggregate(aggregate) => {
            (Some(merged(delivery, &aggregate)), None, Some(aggregate.flush_reason()))
        }
        Delivery::Acks(acks) => (None, Some(several(delivery, &acks)), Some(acks.flush_reason())),
    };
    Shown { frames, merged, acks, reason: reason.map(FlushReason::name), at }
}

fn several(delivery: Delivery<'_, Numbered>, acks: &Acks<'_, Numbered>) -> ShownAcks {
    let mut bytes = Vec::new();
    delivery.for_each_slice(|slice| bytes.extend_from_slice(slice));
    let numbers = |frame: &Frame<Numbered>| frame.bytes.number;
    assert!(acks.frames().map(numbers).eq(delivery.frames().map(numbers)));
    let offload = delivery.offload();
    ShownAcks {
        bytes,
        byte_len: delivery.byte_len(),
        status: offload.checksum,
        has_gso: offload.gso.is_some(),
        vlan: delivery.vlan(),
        count: acks.count(),
        last: acks.last().bytes.number,
        records: acks.records().map(said).collect(),
        arrivals: (acks.first_arrival(), acks.last_arrival()),
    }
}

fn said(record: AckRecord) -> AckSaid {
    let timestamp = (record.ts_value, record.ts_echo);
    assert!(record.has_timestamp || timestamp == (0, 0), "{record:?}");
    AckSaid {
        arrived_at: Instant::from_nanos(record.arrived_at_ns),
        seq: record.seq.0,
        ack: record.ack.0,
        window: record.window,
        timestamp: record.has_timestamp.then_some(timestamp),
        flags: record.flags.bits(),
        ecn: record.ecn,
    }
}

fn merged(delivery: Delivery<'_, Numbered>, aggregate: &Aggregate<'_, Numbered>) -> Merged {
    let mut bytes = Vec::new();
    delivery.for_each_slice(|slice| bytes.extend_from_slice(slice));
    let offload = delivery.offload();
    assert_eq!(usize::from(offload.header_bytes), aggregate.header().len());
    check_alike(aggregate);
    assert_eq!(
        aggregate.payloads().map(<[u8]>::len).sum::<usize>() as u32,
        aggregate.payload_bytes()
    );
    let header = |form| {
        let mut buffer = [0; MAX_HEADER_BYTES];
        let length = aggregate.write_header(form, &mut buffer);
        buffer[..length].to_vec()
    };
    Merged {
        bytes,
        header_bytes: aggregate.header().len(),
        segment_count: aggregate.segment_count(),
        payload_bytes: aggregate.payload_bytes() as usize,
        byte_len: delivery.byte_len(),
        status: offload.checksum,
        gso: offload.gso,
        vlan: delivery.vlan(),
        fixed_id: match aggregate.id_pattern() {
            IdPattern::Undecided | IdPattern::Mixed => None,
            IdPattern::Fixed => Some(true),
            IdPattern::Incrementing => Some(false),
        },
        fixed_outer_id: aggregate.outer_id_pattern().map(|pattern| pattern == IdPattern::Fixed),
        records: aggregate.segments().map(record).collect(),
        headers: [
            header(ChecksumForm::PseudoHeader),
            header(ChecksumForm::Complete),
            header(ChecksumForm::Verified),
        ],
        arrivals: (aggregate.first_arrival(), aggregate.last_arrival()),
    }
}

/// Asserts that the headers of the segments counted as alike differ only in the allowed bytes.
fn check_alike(aggregate: &Aggregate<'_, Numbered>) {
    assert!((1..=aggregate.segment_count()).contains(&aggregate.alike_segments()));
    let (network, transport) = (aggregate.network_at(), aggregate.transport_at());
    let alike = |frame: &Frame<Numbered>| {
        let mut header = frame.bytes()[..aggregate.header().len()].to_vec();
        if header[network] >> 4 == 4 {
            header[network + 4..network + 6].fill(0);
            header[network + 10..network + 12].fill(0);
        }
        if let Some(outer) = aggregate.tunnel().and_then(GsoTunnel::as_udp) {
            let transport = usize::from(outer.outer_transport);
            header[transport + 6..transport + 8].fill(0);
            if !outer.is_outer_v6 {
                header[transport - 16..transport - 14].fill(0);
                header[transport - 10..transport - 8].fill(0);
            }
        }
        if aggregate.kind() == Kind::Datagrams {
            header[transport + 6..transport + 8].fill(0);
        } else {
            header[transport + 4..transport + 8].fill(0);
            header[transport + 16..transport + 18].fill(0);
        }
        (header, frame.bytes().len(), frame.checksum, frame.vlan)
    };
    let mut frames = aggregate.frames().take(aggregate.alike_segments()).map(alike);
    let first = frames.next().expect("one at least");
    assert!(frames.all(|next| next == first), "segments that are said to be alike differ");
}

fn record(segment: rxo_coalesce::SegmentRecord) -> Record {
    Record {
        seq: segment.seq.0,
        ack: segment.ack.0,
        window: segment.window,
        timestamp: segment.timestamp.map(|timestamp| (timestamp.value, timestamp.echo)),
        payload_bytes: segment.payload_bytes as usize,
        arrived_at: segment.arrived_at,
    }
}
