//! Target `part`: changed bytes of a saved part of a study give a valid part, or one error line.

use rxo_capture::{Interface, LinkType, Record};
use rxo_coalesce::Policy;
use rxo_frame::Instant;
use rxo_testkit::{Workload, workload};
use rxo_trace::study::{Part, Point, PollRule, Settings, Span, Study, Terms};

/// Reads `data` as the fields of a part, and also as changes to a valid part: each three bytes are a position
/// and a value.
///
/// # Panics
/// If a part that was read cannot be written, reported or merged.
pub fn run(data: &[u8]) {
    check(Part::from_fields(data).ok());
    _ = Part::from_bytes(data).map_err(|error| assert!(!error.to_string().contains('\n')));
    let good = good();
    // Without the header and the checksum at the end, which detect every change.
    let mut fields = good[18..good.len() - 4].to_vec();
    for change in data.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % fields.len();
        fields[at] ^= change[2];
    }
    check(Part::from_fields(&fields).ok());
}

fn check(part: Option<Part>) {
    let Some(part) = part else { return };
    let bytes = part.to_bytes();
    let again = Part::from_bytes(&bytes).expect("what was written can be read");
    assert!(again.to_bytes() == bytes, "it changed");
    _ = part.report(&Terms::default());
    if let Ok(sum) = part.merge(again) {
        _ = sum.report(&Terms::default());
    }
}

/// Returns the bytes of a valid part from the middle of a capture.
fn good() -> Vec<u8> {
    let point = Point { policy: Policy::linux_gro(), poll: PollRule::Packets(8) };
    let settings = Settings { advise: false, ..Settings::new(point) };
    let mut study = Study::new(settings).expect("valid settings");
    let interface = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    study.begin_source("a capture");
    let mut records: Vec<Record> = workload(Workload::Mixed, 40, 1)
        .into_iter()
        .zip(1..)
        .map(|(bytes, micros)| Record {
            original_bytes: bytes.len() as u32,
            bytes: bytes.into(),
            at: Instant::from_micros(micros),
            ..Record::default()
        })
        .collect();
    study.take(&[interface], &mut records);
    study.end_source("pcap", None);
    let span = Span { series: 7, from: (0, 100), to: (0, 5_000), is_last: false };
    study.into_part(Some(span), None).to_bytes()
}
