//! What is made of a record before it is counted: the packet that the engines get, and its
//! headers.
//!
//! A record that the capture cut is read as if it were whole, zeros in place of what is missing, so
//! that its flow and sizes are counted as they were. The engines get it as it is, and pass it;
//! only when checksums are trusted, and the payload matters to nobody, they get it whole. A packet
//! whose IP header says more than the record holds was cut as well, by whatever wrote the capture,
//! and is read likewise.

use rxo_device::capture::{LinkType, Network, Record, SharedBytes};

use super::checksum::ChecksumMode;
use super::seen::Seen;

/// The longest packet that is made whole, in bytes: one IP packet and what stands before it.
const LONGEST: u32 = 65_535 + 64;

/// A record, read.
#[derive(Debug)]
pub(super) struct Taken {
    /// What the engines get; `None` when it is not IP, or its link type not known.
    pub(super) network: Option<Network>,
    pub(super) seen: Seen,
    /// How long it was, in bytes, link-layer header included.
    pub(super) wire_bytes: u64,
    /// Whether the capture holds only its beginning.
    pub(super) is_cut: bool,
    /// Whether it ends before its IP header says, though the record claims to be whole.
    pub(super) is_short: bool,
    /// Whether its whole IP packet is there, and its checksum can be known.
    pub(super) is_whole: bool,
}

/// Reads a record whose interface is of type `link`.
#[inline]
pub(super) fn take(record: &Record, link: LinkType, mode: ChecksumMode) -> Taken {
    let taken = read(&record.bytes, link);
    let held_bytes = record.bytes.as_ref().len() as u64;
    let wire_bytes = held_bytes.max(record.original_bytes.into());
    let taken = Taken { wire_bytes, ..taken };
    if wire_bytes > held_bytes {
        cut(taken, record, link, mode)
    } else if matches!(taken.seen, Seen::Short(_)) {
        short(taken, record, link, mode)
    } else {
        taken
    }
}

#[inline]
fn read(bytes: &SharedBytes, link: LinkType) -> Taken {
    let network = link.network(bytes);
    let seen = match &network {
        Some(network) => Seen::read(network.link, network.packet.as_ref()).on_vlan(network.vlan),
        None => Seen::Other,
    };
    Taken { network, seen, wire_bytes: 0, is_cut: false, is_short: false, is_whole: true }
}

#[cold]
fn cut(taken: Taken, record: &Record, link: LinkType, mode: ChecksumMode) -> Taken {
    // The end that is missing may be none of the packet's.
    if matches!(taken.seen, Seen::Tcp(_)) || record.original_bytes > LONGEST {
        return Taken { is_cut: true, ..taken };
    }
    whole(taken, padded(record, record.original_bytes, link), mode)
}

/// How long it was only its IP header says; what cannot be told from it stays as it is.
#[cold]
fn short(taken: Taken, record: &Record, link: LinkType, mode: ChecksumMode) -> Taken {
    let taken = Taken { is_cut: true, is_short: true, ..taken };
    let longest = padded(record, LONGEST, link);
    let (Seen::Tcp(segment), Some(network)) = (&longest.seen, &longest.network) else {
        return taken;
    };
    let beyond = network.packet.as_ref().len() as u32 - segment.end;
    let wire_bytes = LONGEST - beyond;
    let taken = Taken { wire_bytes: wire_bytes.into(), ..taken };
    whole(taken, padded(record, wire_bytes, link), mode)
}

/// The record with zeros up to `bytes`, read.
fn padded(record: &Record, bytes: u32, link: LinkType) -> Taken {
    let mut whole = Vec::with_capacity(bytes as usize);
    whole.extend_from_slice(record.bytes.as_ref());
    whole.resize(bytes as usize, 0);
    read(&whole.into(), link)
}

/// `taken` with the sizes of `whole`, and with its bytes where no checksum is looked at.
fn whole(taken: Taken, whole: Taken, mode: ChecksumMode) -> Taken {
    let network = if mode == ChecksumMode::Trust { whole.network } else { taken.network };
    Taken { network, seen: whole.seen, is_cut: true, is_whole: false, ..taken }
}

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;
    use rxo_testkit::seg;

    use super::*;

    fn record(bytes: &[u8], original_bytes: usize) -> Record {
        Record {
            bytes: bytes.to_vec().into(),
            original_bytes: original_bytes as u32,
            at: Instant::ZERO,
            ..Record::default()
        }
    }

    fn payload_bytes(taken: &Taken) -> u32 {
        match taken.seen {
            Seen::Tcp(segment) => segment.payload_bytes,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_whole_record_is_given_as_it_is() {
        let bytes = seg().len(500).bytes();
        let taken = take(&record(&bytes, bytes.len()), LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_whole && !taken.is_cut);
        assert_eq!(taken.network.unwrap().packet.as_ref(), bytes);
        assert_eq!(taken.wire_bytes, bytes.len() as u64);
    }

    #[test]
    fn a_cut_record_is_counted_whole_and_given_whole_only_when_trusted() {
        let bytes = seg().ts(1, 2).len(1000).bytes();
        for (mode, given) in [(ChecksumMode::Verify, 96), (ChecksumMode::Trust, bytes.len())] {
            let taken = take(&record(&bytes[..96], bytes.len()), LinkType::ETHERNET, mode);
            assert!(!taken.is_whole && taken.is_cut);
            assert_eq!(payload_bytes(&taken), 1000);
            assert_eq!(taken.wire_bytes, bytes.len() as u64);
            assert_eq!(taken.network.unwrap().packet.as_ref().len(), given, "{mode}");
        }
    }

    #[test]
    fn a_packet_that_ends_before_its_ip_header_says_is_cut_too() {
        for packet in [seg().len(400), seg().v6().len(400), seg().vlan(7).ts(1, 2).len(400)] {
            let bytes = packet.bytes();
            let held = &bytes[..bytes.len() - 300];
            for (mode, given) in
                [(ChecksumMode::Verify, held.len()), (ChecksumMode::Trust, bytes.len())]
            {
                let taken = take(&record(held, held.len()), LinkType::ETHERNET, mode);
                assert!(taken.is_short && taken.is_cut && !taken.is_whole, "{packet:?}");
                assert_eq!(payload_bytes(&taken), 400, "{packet:?}");
                assert_eq!(taken.wire_bytes, bytes.len() as u64, "{packet:?}");
                assert_eq!(taken.network.unwrap().packet.as_ref().len(), given, "{mode}");
            }
        }
        let longest = seg().len(100).length_lie(65_000).bytes();
        let record = record(&longest, longest.len());
        let taken = take(&record, LinkType::ETHERNET, ChecksumMode::Trust);
        assert!(taken.is_short && taken.wire_bytes > 65_000, "{}", taken.wire_bytes);
        let nothing_but_addresses = &longest[..34];
        let record = super::tests::record(nothing_but_addresses, 34);
        let taken = take(&record, LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_short, "{taken:?}");
    }

    #[test]
    fn a_record_without_its_padding_is_whole() {
        let bytes = seg().pure_ack().padded().bytes();
        let taken =
            take(&record(&bytes[..54], bytes.len()), LinkType::ETHERNET, ChecksumMode::Verify);
        assert!(taken.is_whole && taken.is_cut);
    }

    #[test]
    fn a_length_that_no_packet_has_is_not_believed() {
        let bytes = seg().len(1000).bytes();
        let taken = take(&record(&bytes[..60], 1 << 30), LinkType::ETHERNET, ChecksumMode::Trust);
        assert_eq!(taken.network.unwrap().packet.as_ref().len(), 60);
    }

    #[test]
    fn an_unknown_link_gives_nothing() {
        let taken = take(&record(&[1; 60], 60), LinkType(147), ChecksumMode::Verify);
        assert!(taken.network.is_none() && taken.seen == Seen::Other);
    }
}
