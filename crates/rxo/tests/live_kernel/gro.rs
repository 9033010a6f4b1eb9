//! Tests of coalescing: compares the deliveries of the kernel with those of rxo, flow by flow.
//!
//! The order of flows at the end of a poll differs: the kernel's follows its hash. Within a flow, order,
//! boundaries and bytes must be equal. Where they are not, the differences of [`Difference`] that apply to
//! the flow are applied first: rxo gets the frames as the kernel treats them, and must then deliver the same
//! packets as the kernel.

use rxo_coalesce::{CeRule, Config, Engine, Policy, UdpRule};
use rxo_frame::{Gather, Instant, LinkKind};
use rxo_testkit::naive::{Reading, read, resegment};
use rxo_testkit::seg;
use rxo_wire::{FlowKey, IpVersion, Parsed, Transport, parse};

use crate::burst;
pub(crate) use crate::gro_difference::Difference;
use crate::gro_difference::{Flow, Level, Place};
use crate::whole::Whole;
use crate::world::Kernel;
use crate::{Test, gro_examples};

pub(crate) const TESTS: &[Test] =
    &[("each_listed_difference_in_coalescing_occurs", each_difference_occurs)];

fn each_difference_occurs() {
    let mut kernel = Kernel::new();
    let mut rxo = Rxo::new(&mut kernel);
    for difference in Difference::ALL {
        let mut burst = burst::of(&gro_examples::of(difference));
        let delivered = kernel.coalesce(&mut burst);
        let found = rxo.compare(&burst, &delivered).unwrap();
        // The difference is absent from kernels that are not that old, or not that new.
        let is_absent = found.is_empty() && difference.depends_on_kernel();
        assert!(is_absent || found == [difference], "{difference:?}: {found:?}");
    }
}

/// The engines of rxo, with `linux-gro` and UDP coalesced as well.
pub(crate) struct Rxo {
    engine: Engine<Vec<u8>>,
    /// An engine that also merges segments marked CE.
    of_marks: Engine<Vec<u8>>,
    /// `true` if the kernel coalesces frames with VLAN tags.
    kernel_knows_tags: bool,
}

/// A delivery of rxo, and for an aggregate the frames that it was made of.
pub(crate) struct Delivered {
    pub(crate) whole: Whole,
    pub(crate) frames: Vec<Whole>,
}

impl Rxo {
    pub(crate) fn new(kernel: &mut Kernel) -> Self {
        let mut tagged = burst::of(&[0, 1].map(|n| seg().seq(100 * n).id(n as u16).vlan(5)));
        let kernel_knows_tags = kernel.coalesce(&mut tagged).len() == 1;
        let policy = Policy { udp: UdpRule::Equal, ..Policy::linux_gro() };
        let engine = |policy| Engine::new(Config::new(policy, 1)).unwrap();
        let of_marks = engine(Policy { ce: CeRule::Equal, ..policy });
        Self { engine: engine(policy), of_marks, kernel_knows_tags }
    }

    /// Returns the deliveries of rxo if `burst` is one poll.
    pub(crate) fn deliver(&mut self, burst: &[Whole]) -> Vec<Delivered> {
        poll(&mut self.engine, burst.iter())
    }

    /// Returns the differences between the deliveries of the kernel and of rxo for `burst`.
    ///
    /// # Errors
    /// Describes a difference that is not on the list, for a person to read.
    pub(crate) fn compare(
        &mut self,
        burst: &[Whole],
        kernel: &[Whole],
    ) -> Result<Vec<Difference>, String> {
        let rxo: Vec<Whole> = self.deliver(burst).into_iter().map(|one| one.whole).collect();
        let mut found = Vec::new();
        for key in keys(burst.iter().map(|whole| &whole.bytes)) {
            let of = |wholes: &[Whole]| -> Vec<Whole> {
                wholes
                    .iter()
                    .filter(|one| key_of(&one.bytes) == key)
                    .map(Whole::essential)
                    .collect()
            };
            let (mut kernel, mut rxo) = (of(kernel), of(&rxo));
            if key == FlowKey::NONE {
                // Frames that belong to no flow have no order among them.
                kernel.sort_unstable();
                rxo.sort_unstable();
            }
            if kernel != rxo {
                let flow = Flow::new(burst, key, self.kernel_knows_tags);
                let explained = self.explain(&flow, &kernel);
                let all = || format!("{key:?}\n{}", shown(&kernel, &rxo));
                found.extend(explained.ok_or_else(all)?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns the smallest set of differences with which rxo delivers the same packets as the kernel; `None`
    /// if even all of them do not suffice.
    fn explain(&mut self, flow: &Flow<'_>, kernel: &[Whole]) -> Option<Vec<Difference>> {
        let mut applied: Vec<_> =
            Difference::ALL.into_iter().filter(|one| flow.has(*one)).collect();
        if !self.is_explained(flow, kernel, &applied) {
            return None;
        }
        for one in applied.clone() {
            let fewer: Vec<_> = applied.iter().copied().filter(|other| *other != one).collect();
            if !fewer.is_empty() && self.is_explained(flow, kernel, &fewer) {
                applied = fewer;
            }
        }
        (!applied.is_empty()).then_some(applied)
    }

    fn is_explained(&mut self, flow: &Flow<'_>, kernel: &[Whole], applied: &[Difference]) -> bool {
        let engine = match applied.contains(&Difference::CeMarks) {
            true => &mut self.of_marks,
            false => &mut self.engine,
        };
        let places = flow.places(applied);
        let is_placed =
            |one: &Whole| places.iter().any(|place| flow.is_at(&one.bytes, place, applied));
        kernel.iter().all(is_placed)
            && places.iter().all(|place: &Place<'_>| {
                let kernel = kernel.iter().filter(|one| flow.is_at(&one.bytes, place, applied));
                let rxo: Vec<Whole> = place
                    .polls
                    .iter()
                    .flat_map(|frames| poll(engine, frames.iter().copied()))
                    .map(|one| one.whole)
                    .collect();
                match place.level {
                    Level::Deliveries => {
                        kernel.eq(rxo.iter().map(Whole::essential).collect::<Vec<_>>().iter())
                    }
                    Level::Frames => {
                        let said = |frame| without_unsaid(frame, applied);
                        frames(kernel, said) == frames(rxo.iter(), said)
                    }
                    Level::Payload => payload(kernel) == payload(rxo.iter()),
                }
            })
    }
}

/// Returns the payload of all these deliveries together.
fn payload<'w>(deliveries: impl Iterator<Item = &'w Whole>) -> Vec<u8> {
    let payload = |one: &Whole| match parse(&one.bytes) {
        Ok(parsed) => one.bytes[parsed.at.payload_range()].to_vec(),
        Err(_) => one.bytes.clone(),
    };
    deliveries.flat_map(payload).collect()
}

/// Returns the deliveries of the engine if these frames are one poll. Asserts that all frames are among them,
/// each flow in order.
fn poll<'w>(
    engine: &mut Engine<Vec<u8>>,
    frames: impl Iterator<Item = &'w Whole>,
) -> Vec<Delivered> {
    let mut batch: Vec<_> = frames.map(Whole::frame).collect();
    let given: Vec<_> = batch.iter().map(|frame| frame.bytes.clone()).collect();
    let (mut delivered, mut back) = (Vec::new(), Vec::new());
    engine.poll(&mut batch, Instant::ZERO, |deliveries| {
        delivered.extend(deliveries.iter().map(|one| Delivered {
            whole: Whole::of(one),
            frames: match one.frame_count() {
                1 => Vec::new(),
                _ => one.frames().map(|frame| Whole::of(frame.borrowed())).collect(),
            },
        }));
        back.extend(deliveries.into_frames().map(|frame| frame.bytes));
    });
    for key in keys(given.iter()) {
        let of = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
            frames.iter().filter(|bytes| key_of(bytes) == key).cloned().collect()
        };
        assert!(of(&given) == of(&back), "{key:?}: frames are lost, or out of order");
    }
    assert_eq!(given.len(), back.len());
    delivered
}

/// Returns the frames that these deliveries stand for, each passed through `said`.
fn frames<'w>(
    deliveries: impl Iterator<Item = &'w Whole>,
    said: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Vec<Result<Vec<u8>, String>> {
    let cut = deliveries.flat_map(|one| match (one.header[1], reading(one)) {
        // rxo's own segmentation refuses some of the kernel's aggregates.
        (1.., Reading::Segment(shape) | Reading::Datagram(shape)) => {
            let size = u16::from_ne_bytes([one.header[4], one.header[5]]);
            let frames = resegment(&one.bytes, &shape, size.into(), false);
            frames.into_iter().map(Ok).collect()
        }
        _ => match one.frames() {
            Ok(frames) => frames.into_iter().map(Ok).collect(),
            Err(why) => vec![Err(why)],
        },
    });
    cut.map(|frame| frame.map(|frame| said(with_one_zero(frame)))).collect()
}

/// Returns the frame with 0 instead of a TCP checksum of 0xffff, which is the other zero of its arithmetic: a
/// kernel writes one of them when it completes a checksum, and the other when it segments.
pub(crate) fn with_one_zero(mut frame: Vec<u8>) -> Vec<u8> {
    if let Ok(Parsed { transport: Transport::Tcp(_), at, .. }) = parse(&frame)
        && let Some(field) = frame.get_mut(at.transport as usize + 16..at.transport as usize + 18)
        && field == [0xff; 2]
    {
        field.fill(0);
    }
    frame
}

/// Returns the frame without its IPv4 ID, because a virtio-net header cannot express that the ID is constant,
/// and without an urgent pointer that the kernel has lost.
pub(crate) fn without_unsaid(mut frame: Vec<u8>, applied: &[Difference]) -> Vec<u8> {
    let Ok(parsed) = parse(&frame) else { return frame };
    let (network, transport) = (parsed.at.network as usize, parsed.at.transport as usize);
    if parsed.ip.version == IpVersion::V4 {
        frame[network + 4..network + 6].fill(0);
        frame[network + 10..network + 12].fill(0);
    }
    let is_tcp = matches!(parsed.transport, Transport::Tcp(_));
    if is_tcp && applied.contains(&Difference::UrgentPointer) {
        frame[transport + 16..transport + 20].fill(0);
    }
    frame
}

/// Returns the flow that a frame belongs to, as far as its bytes can be parsed.
pub(crate) fn key_of(bytes: &[u8]) -> FlowKey {
    match parse(bytes) {
        Ok(parsed) => parsed.key,
        Err(unparsed) => unparsed.addresses.unwrap_or(FlowKey::NONE),
    }
}

fn keys<'b>(frames: impl Iterator<Item = &'b Vec<u8>>) -> Vec<FlowKey> {
    let mut keys: Vec<FlowKey> = Vec::new();
    for key in frames.map(|bytes| key_of(bytes)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn shown(kernel: &[Whole], rxo: &[Whole]) -> String {
    [("kernel", kernel), ("rxo", rxo)]
        .map(|(who, wholes)| format!("{who}:\n{}", crate::burst::show(wholes)))
        .concat()
}

/// Parses a frame without rxo's code.
pub(crate) fn reading(whole: &Whole) -> Reading {
    read(&whole.frame(), LinkKind::Ethernet)
}
