//! Tests of segmentation, with GSO frames that have random headers, and with aggregates of rxo.
//!
//! The kernel must cut both into the same frames as rxo, byte for byte, or both must refuse them. Where the
//! results differ, the difference must be one of [`Difference`].

use rxo_testkit::naive::Reading;
use rxo_testkit::{Packet, Random, seg, udp};

pub(crate) use crate::cut_difference::{Difference, compare};
use crate::cut_difference::{ip_bytes, place_of_checksum};
use crate::gro::{Delivered, Rxo, reading, with_one_zero, without_unsaid};
use crate::gro_difference::has_wrong_seed;
use crate::whole::{Whole, network_at};
use crate::world::Kernel;
use crate::{Test, burst, cut_examples};

pub(crate) const TESTS: &[Test] = &[
    ("each_listed_difference_in_segmentation_occurs", each_difference_occurs),
    ("a_true_header_makes_no_difference", true_header),
    ("an_aggregate_comes_apart_in_the_kernel_but_for_listed_losses", each_loss_occurs),
];

fn each_difference_occurs() {
    let mut kernel = Kernel::new();
    for difference in Difference::ALL {
        let whole = cut_examples::of(difference);
        let cut = kernel.cut(&whole);
        assert_eq!(compare(&whole, cut.as_deref()), Ok(Some(difference)));
    }
}

fn true_header() {
    let mut kernel = Kernel::new();
    for packet in [seg(), udp(), seg().v6().ts(1, 2), udp().v6(), seg().vlan(5).fin().psh().cwr()] {
        let whole = Whole::of(packet.len(2_500).already_aggregated(1_000).frame().borrowed());
        let cut = kernel.cut(&whole).unwrap();
        assert_eq!(cut.len(), 3);
        assert_eq!(compare(&whole, Some(&cut)), Ok(None));
    }
}

fn each_loss_occurs() {
    let mut kernel = Kernel::new();
    let mut rxo = Rxo::new(&mut kernel);
    let base = |n: u32| seg().seq(100 * n).id(n as u16);
    let lied = base(1).bad_checksum().verified();
    let cases = [
        (vec![base(0), base(1), base(2).len(50).psh()], vec![]),
        (vec![base(0).v6(), base(1).v6().padded()], vec![]),
        (vec![base(0).id(9), base(1).id(9)], vec![Loss::FixedId]),
        (vec![base(0), lied.clone()], vec![Loss::TrustedChecksum]),
        (vec![base(0).id(1), lied], vec![Loss::FixedId, Loss::TrustedChecksum]),
    ];
    let mut cases = cases.map(|(packets, losses)| (burst::of(&packets), losses)).to_vec();
    let mut wrong_seed = burst::of(&[base(0).partial(), base(1).partial()]);
    wrong_seed[1].bytes[50] ^= 1;
    cases.push((wrong_seed, vec![Loss::TrustedChecksum]));
    for (burst, losses) in cases {
        let delivered = rxo.deliver(&burst);
        assert_eq!(delivered.len(), 1);
        assert_eq!(recover(&mut kernel, &delivered[0]), Ok(losses));
    }
}

/// A difference between the frames of an aggregate and the frames into which the kernel cuts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// A virtio-net header cannot express that all segments have one IPv4 ID; the kernel increments it.
    FixedId,
    /// The device marked a wrong checksum as verified, or marked a checksum as partial whose field is not the
    /// sum of the pseudo-header. The kernel writes the right checksum, as it does for its own aggregates.
    TrustedChecksum,
}

/// Lets the kernel segment an aggregate. Returns the differences from the frames that it was made of.
///
/// # Errors
/// Describes any other difference, for a person to read.
pub(crate) fn recover(kernel: &mut Kernel, aggregate: &Delivered) -> Result<Vec<Loss>, String> {
    let cut = kernel.cut(&aggregate.whole).ok_or("the kernel refuses an aggregate")?;
    if let Some(difference) = compare(&aggregate.whole, Some(&cut))? {
        return Err(format!("{difference:?}"));
    }
    let mut frames = Vec::new();
    for one in &aggregate.frames {
        let mut one = one.clone();
        one.bytes.truncate(ip_bytes(&one));
        frames.extend(one.frames()?);
    }
    let without = |frames: &[Vec<u8>], losses: &[Loss]| -> Vec<Vec<u8>> {
        frames.iter().map(|frame| without_lost(frame.clone(), losses)).collect()
    };
    let has_one_id = frames.iter().all(|frame| id(frame) == id(&frames[0]));
    let is_trusted = aggregate.frames.iter().any(is_trusted);
    let sets: [(bool, &[Loss]); 4] = [
        (true, &[]),
        (has_one_id, &[Loss::FixedId]),
        (is_trusted, &[Loss::TrustedChecksum]),
        (has_one_id && is_trusted, &[Loss::FixedId, Loss::TrustedChecksum]),
    ];
    let mut sets = sets.into_iter().filter(|(may_be, _)| *may_be).map(|(_, losses)| losses);
    let found = sets.find(|losses| without(&cut, losses) == without(&frames, losses));
    found.map(<[Loss]>::to_vec).ok_or_else(|| "other frames than it was made of".to_owned())
}

/// Returns `true` if the device is responsible for a checksum that may be wrong: it has verified the
/// checksum, or will complete it.
fn is_trusted(one: &Whole) -> bool {
    let continues = match reading(one) {
        Reading::Segment(read) | Reading::Datagram(read) => has_wrong_seed(one, &read),
        _ => false,
    };
    one.header[0] & 2 != 0 || continues
}

fn id(frame: &[u8]) -> &[u8] {
    let network = network_at(frame);
    &frame[network + 4..network + 6]
}

fn without_lost(frame: Vec<u8>, losses: &[Loss]) -> Vec<u8> {
    let frame = with_one_zero(frame);
    let mut frame =
        if losses.contains(&Loss::FixedId) { without_unsaid(frame, &[]) } else { frame };
    if losses.contains(&Loss::TrustedChecksum) {
        let at = place_of_checksum(&frame);
        frame[at..at + 2].fill(0);
    }
    frame
}

/// Creates a GSO frame of `seed` with its header, which is correct in half of the cases.
pub(crate) fn random(seed: u64) -> Whole {
    let mut random = Random::new(seed);
    let packet = packet(&mut random);
    let size = 1 + random.below(1_500) as u16;
    let packet = match random.percent(90) {
        true => packet.already_aggregated(size),
        false => packet.partial(),
    };
    let mut whole = Whole::of(packet.frame().borrowed());
    if random.percent(50) {
        for _ in 0..1 + random.below(2) {
            lie(&mut whole, &mut random);
        }
    }
    limit(&mut whole);
    whole
}

/// Raises the segment size so that the frame gives fewer segments than the 500 frames that a TAP holds.
fn limit(whole: &mut Whole) {
    let size = u16::from_ne_bytes([whole.header[4], whole.header[5]]);
    let least = (whole.bytes.len() / 250) as u16 + 1;
    if size != 0 && size < least {
        whole.header[4..6].copy_from_slice(&least.to_ne_bytes());
    }
}

fn packet(random: &mut Random) -> Packet {
    let len = match random.below(100) {
        0..30 => 100,
        30..60 => 1_448,
        60..90 => 4_000,
        90..97 => 0,
        97..99 => 20_000,
        _ => 60_000,
    };
    let len = len + random.below(100) as usize;
    let base = if random.percent(40) { udp() } else { seg() };
    let base = base.len(len).id(random.next() as u16).seq(random.next() as u32);
    let base = if random.percent(50) { base.v6() } else { base };
    let base = if random.percent(40) { base.ts(random.next() as u32, 7) } else { base };
    let base = if random.percent(15) { base.vlan(5) } else { base };
    let base =
        if random.percent(30) { base.flags(0x10 | random.next() as u16 & 0xcf) } else { base };
    let base = if random.percent(30) {
        base.tos(random.next() as u8).ttl(random.next() as u8)
    } else {
        base
    };
    match random.below(30) {
        0 => base.ip_options(&[7, 4, 4, 1]),
        1 => base.extension(60, &[1, 4, 0, 0, 0, 0]),
        2 => base.extension(43, &[0, 0]),
        3 => base.df(false),
        4 => base.padded(),
        5 => base.udp_length_lie(random.below(9) as i16 - 4),
        6 => base.fragment(0, true),
        7 => base.flags(0xfff),
        _ => base,
    }
}

/// Makes one field of the header, or of the frame, wrong.
fn lie(whole: &mut Whole, random: &mut Random) {
    let any = random.next();
    let small = random.below(80) as u16;
    let mut set =
        |at: usize, value: u16| whole.header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    let network = network_at(&whole.bytes);
    match random.below(9) {
        0 => whole.header[1] = [0, 1, 3, 4, 5, 7, 0x81, 0x84, 0x85][any as usize % 9],
        1 => whole.header[0] = any as u8 & 7,
        2 => set(2, [0, small, any as u16][any as usize % 3]),
        3 => set(4, [0, 1, small, any as u16, 65_535][any as usize % 5]),
        4 => set(6, network as u16 + small),
        5 => set(8, [6, 16, small, 0][any as usize % 4]),
        6 => whole.bytes.extend(vec![any as u8; 1 + small as usize]),
        7 => {
            whole.bytes.truncate((network + 20).max(whole.bytes.len().saturating_sub(small.into())))
        }
        _ => {
            let at = network + usize::from(small) % (whole.bytes.len() - network);
            whole.bytes[at] ^= 1 << (any % 8);
        }
    }
}
