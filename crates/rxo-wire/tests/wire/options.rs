//! TCP options one by one, and the classification of all options of a header.

use rxo_wire::tcp::{BadOption, OptionKind, OptionLayout, Options, Timestamp};
use rxo_wire::{Transport, parse};

use crate::packets::Shape;

fn kinds(bytes: &[u8]) -> Vec<Result<OptionKind, BadOption>> {
    Options::new(bytes).map(|option| option.map(|option| option.kind)).collect()
}

fn layout(options: &[u8]) -> (OptionLayout, Timestamp) {
    let frame = Shape { tcp_options: options.to_vec(), ..Shape::default() }.frame();
    match parse(&frame).unwrap().transport {
        Transport::Tcp(tcp) => (tcp.options, tcp.timestamp),
        other => panic!("{other:?}"),
    }
}

/// Known options are read at any offset, and unknown ones are skipped (RFC 9293, sections 3.1 (MUST-4,
/// MUST-6) and 3.2 (MUST-64)).
#[test]
fn the_options_of_a_syn_are_read_in_order() {
    let syn =
        [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7, 253, 4, 0xca, 0xfe, 0, 9];
    use OptionKind::{
        MaximumSegmentSize, NoOperation, SackPermitted, Timestamp, Unknown, WindowScale,
    };
    let expected =
        [MaximumSegmentSize, SackPermitted, Timestamp, NoOperation, WindowScale, Unknown(253)];
    assert_eq!(kinds(&syn), expected.map(Ok));
    let data: Vec<_> = Options::new(&syn).map(|option| option.unwrap().data.to_vec()).collect();
    assert_eq!(data[0], [5, 0xb4]);
    assert!(data[1].is_empty() && data[3].is_empty());
    assert_eq!(data[5], [0xca, 0xfe]);
}

/// An impossible length ends the list of options (RFC 9293, section 3.1 (MUST-7)).
#[test]
fn a_length_that_cannot_be_true_ends_the_list_with_an_error() {
    for bytes in [&[2][..], &[2, 0], &[2, 1], &[2, 5, 0, 0], &[8, 255]] {
        assert_eq!(kinds(bytes), [Err(BadOption)], "{bytes:?}");
    }
    assert_eq!(
        kinds(&[1, 5, 2, 8, 1]),
        [Ok(OptionKind::NoOperation), Ok(OptionKind::Sack), Err(BadOption)]
    );
    assert!(kinds(&[]).is_empty() && kinds(&[0, 2]).is_empty());
}

#[test]
fn arrangements_of_the_timestamp_have_their_names() {
    let stamp = Timestamp { value: 0x0a0b_0c0d, echo: 0x0102_0304 };
    let option = [8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 1, 2, 3, 4];
    let around = |before: &[u8], after: &[u8]| [before, option.as_slice(), after].concat();
    assert_eq!(layout(&around(&[1, 1], &[])), (OptionLayout::AlignedTimestamp, stamp));
    assert_eq!(layout(&around(&[1], &[1])), (OptionLayout::Timestamp, stamp));
    assert_eq!(layout(&around(&[], &[1, 1])), (OptionLayout::Timestamp, stamp));
    assert_eq!(layout(&around(&[], &[0, 0])), (OptionLayout::Timestamp, stamp));
    let twice = [around(&[1, 1], &[]), around(&[1, 1], &[])].concat();
    assert_eq!(layout(&twice).0, OptionLayout::Other);
    assert_eq!(layout(&around(&[1, 1], &[4, 2, 1, 1])).0, OptionLayout::Other);
    assert_eq!(layout(&around(&[4, 2], &[])).0, OptionLayout::Other);
}

#[test]
fn what_is_no_timestamp_is_other_or_malformed() {
    assert_eq!(layout(&[]), (OptionLayout::None, Timestamp::default()));
    assert_eq!(layout(&[1, 1, 1, 1]).0, OptionLayout::Other);
    assert_eq!(layout(&[0, 0, 0, 0]).0, OptionLayout::Other);
    assert_eq!(layout(&[3, 3, 7, 0]).0, OptionLayout::Other);
    assert_eq!(layout(&[8, 6, 1, 2, 3, 4, 1, 1]).0, OptionLayout::Other, "too short a timestamp");
    assert_eq!(layout(&[1, 1, 8, 9, 0, 0, 0, 0]).0, OptionLayout::Malformed);
    assert_eq!(layout(&[8, 0, 0, 0]).0, OptionLayout::Malformed);
}
