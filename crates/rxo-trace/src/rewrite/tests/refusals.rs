//! Tests that impossible requests are reported, and that missing data is detected.

use super::*;

#[test]
fn what_was_coalesced_is_not_coalesced_again() {
    let (coalesced, _) = coalesce(&ethernet(&bulk(1, 30)), remember()).unwrap();
    let error = coalesce(&coalesced, remember()).unwrap_err();
    assert!(matches!(error, RewriteError::AlreadyCoalesced), "{error}");
    // The refusal also works after another program has rewritten the section.
    let (records, interfaces, _) = read(&coalesced);
    let records: Vec<Plain> = records.iter().map(plain).collect();
    let error = coalesce(&pcapng(&interfaces, &records), remember()).unwrap_err();
    assert!(matches!(error, RewriteError::AlreadyCoalesced), "{error}");
}

#[test]
fn what_was_not_coalesced_cannot_be_expanded() {
    let foreign = [ethernet(&bulk(1, 3)), pcap(MAGICS[0], 0, 1, &[]), pcapng(&[], &[])];
    for file in foreign {
        let error = expand(&file, None).unwrap_err();
        assert!(matches!(error, RewriteError::NotCoalesced), "{error}");
    }
}

#[test]
fn what_is_missing_is_noticed() {
    let (coalesced, _) = coalesce(&ethernet(&bulk(1, 300)), remember()).unwrap();
    let (whole, _, _) = read(&coalesced);
    let ends = block_ends(&coalesced);
    for (number, end) in ends.iter().enumerate().skip(2) {
        let result = expand(&coalesced[..*end], None);
        let is_whole = number + 1 == ends.len();
        assert_eq!(result.is_ok(), is_whole, "{number} of {} blocks", ends.len());
    }
    assert_eq!(whole.len(), ends.len() - 2);
    // A packet in the middle is missing.
    let gap = [&coalesced[..ends[3]], &coalesced[ends[4]..]].concat();
    let error = expand(&gap, None).unwrap_err();
    assert!(matches!(error, RewriteError::Changed(_) | RewriteError::Packet { .. }), "{error}");
}

#[test]
fn of_a_file_cut_within_a_block_what_stands_before_is_given() {
    let file = ethernet(&bulk(1, 300));
    let (coalesced, _) = coalesce(&file, remember()).unwrap();
    let (expanded, figures) = expand(&coalesced[..coalesced.len() - 5], None).unwrap();
    let (before, after) = (read(&file).0, read(&expanded).0);
    assert!(figures.originals > 200 && figures.originals < 300, "{figures:?}");
    assert!(before.iter().map(plain).take(after.len()).eq(after.iter().map(plain)));
}
