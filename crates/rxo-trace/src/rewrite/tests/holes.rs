//! Tests of expanding a coalesced file with one bad block: all packets are restored, or those before the
//! damage, or none.

use proptest::prelude::*;

use super::*;

/// The damage to a block.
#[derive(Clone, Debug)]
enum Damage {
    /// The block is missing.
    Removed,
    /// The block is swapped with another.
    Swapped(prop::sample::Index),
    /// A byte of the block is changed.
    Changed(prop::sample::Index, u8),
    /// A byte of the block's length is changed: one of the four at its start or at its end.
    Length(usize, u8),
    /// The file ends within the block.
    Cut(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        Just(Damage::Removed),
        index().prop_map(Damage::Swapped),
        (index(), 1_u8..).prop_map(|(at, by)| Damage::Changed(at, by)),
        (0..8_usize, 1_u8..).prop_map(|(at, by)| Damage::Length(at, by)),
        index().prop_map(Damage::Cut),
    ]
}

/// Returns the file with this damage to the block that `which` selects; the section's block is never damaged.
fn damaged(file: &[u8], which: prop::sample::Index, damage: &Damage) -> Vec<u8> {
    let ends = block_ends(file);
    let mut starts = vec![0];
    starts.extend(&ends[..ends.len() - 1]);
    let mut blocks: Vec<Vec<u8>> =
        starts.iter().zip(&ends).map(|(start, end)| file[*start..*end].to_vec()).collect();
    let which = 1 + which.index(blocks.len() - 1);
    match damage {
        Damage::Removed => _ = blocks.remove(which),
        Damage::Swapped(other) => {
            let other = 1 + other.index(blocks.len() - 1);
            blocks.swap(which, other);
        }
        Damage::Changed(at, by) => {
            let at = at.index(blocks[which].len());
            blocks[which][at] ^= by;
        }
        Damage::Length(at, by) => {
            let at = if *at < 4 { 4 + at } else { blocks[which].len() - 8 + at };
            blocks[which][at] ^= by;
        }
        Damage::Cut(at) => {
            let bytes = at.index(blocks[which].len());
            blocks[which].truncate(bytes);
            blocks.truncate(which + 1);
        }
    }
    blocks.concat()
}

/// Returns a capture of interleaved flows and packets that are not coalesced, so that an aggregate precedes
/// packets of other flows. The second interface is described late.
fn mixed() -> Vec<u8> {
    let data = |flow: u32, n: u32| seg().flow(flow).seq(1 + 9 * n).len(9).id(n as u16);
    let packets: Vec<Packet> = (0..240_u32)
        .map(|n| match n % 7 {
            6 => udp().id(n as u16).len(40),
            other => data(other % 3, 2 * (n / 7) + other / 3),
        })
        .collect();
    let record = |(n, packet): (usize, &Packet)| -> Plain {
        let bytes = packet.bytes();
        let options = if n % 9 == 4 { vec![(1, b"seen".to_vec())] } else { Vec::new() };
        (
            u32::from(n > 150),
            Instant::from_nanos(START_NS + n as u64),
            bytes.len() as u32,
            bytes,
            options,
        )
    };
    let records: Vec<Plain> = packets.iter().enumerate().map(record).collect();
    pcapng(&[interface(LinkType::ETHERNET), interface(LinkType::ETHERNET)], &records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_bad_block_gives_an_error_or_what_stands_before_it(
        which: prop::sample::Index,
        damage in damage(),
        policy in 0..11_usize,
    ) {
        let file = mixed();
        let policy = Policy::all()[policy % Policy::all().len()];
        let (coalesced, _) = coalesce(&file, settings(policy)).unwrap();
        let bad = damaged(&coalesced, which, &damage);
        let Ok((expanded, figures)) = expand(&bad, None) else { return Ok(()) };
        let (before, after) = (read(&file).0, read(&expanded).0);
        prop_assert_eq!(figures.originals, after.len() as u64);
        prop_assert!(before.iter().map(whole).take(after.len()).eq(after.iter().map(whole)));
        prop_assert!(around(&file).1.starts_with(&around(&expanded).1));
        let is_whole = after.len() == before.len();
        prop_assert!(is_whole || read(&bad).2.is_some(), "the rest is missing, and nothing says so");
    }
}

/// Two flows are interleaved; the aggregate of the second is unreadable, so its packets are missing.
#[test]
fn nothing_from_behind_a_hole_is_written() {
    let packets: Vec<Packet> = (0..40_u32)
        .map(|n| seg().flow(n % 2).seq(1 + 9 * (n / 2)).len(9).id((n / 2) as u16))
        .collect();
    let file = ethernet(&packets);
    let (mut coalesced, figures) = coalesce(&file, remember()).unwrap();
    assert_eq!(figures.deliveries, 2);
    let start = block_ends(&coalesced)[2];
    coalesced[start + 4] ^= 0x80;
    let (expanded, figures) = expand(&coalesced, None).unwrap();
    assert_eq!((figures.originals, figures.left_out), (1, 19));
    let (before, after) = (read(&file).0, read(&expanded).0);
    assert_eq!(after.len(), 1);
    assert_eq!(whole(&before[0]), whole(&after[0]));
}

/// Returns a gzip file with `bytes` uncompressed.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut pieces = bytes.chunks(60_000).peekable();
    while let Some(piece) = pieces.next() {
        let length = piece.len() as u16;
        file.push(pieces.peek().is_none().into());
        file.extend([length.to_le_bytes(), (!length).to_le_bytes()].as_flattened());
        file.extend_from_slice(piece);
    }
    file.extend(crc32fast::hash(bytes).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}

/// A decompressor detects damage only at the end, after wrong packets.
#[test]
fn of_a_damaged_compressed_file_nothing_is_given() {
    let (coalesced, _) = coalesce(&mixed(), settings(Policy::none())).unwrap();
    let packed = gzip(&coalesced);
    assert!(expand(&packed, None).unwrap().0 == mixed());
    // Within a packet; and where the file ends early.
    let mut changed = packed.clone();
    changed[10 + 5 + block_ends(&coalesced)[7] - 20] ^= 1;
    for damaged in [&changed[..], &packed[..packed.len() - 100]] {
        let error = expand(damaged, None).map(|(_, figures)| figures).unwrap_err();
        assert!(matches!(error, RewriteError::DamagedPacked { .. }), "{error}");
    }
}
