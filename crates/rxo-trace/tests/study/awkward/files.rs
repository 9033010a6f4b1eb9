//! Captures in several files, in other link types, and in damaged files.

use std::io::Cursor;

use rxo_capture::{Capture, CaptureWriter, LinkType, Packet, Record};
use rxo_trace::report::Report;
use rxo_trace::study::Study;

use super::directions::interface;
use super::transfer::clean;
use super::{assert_same_answer, chosen, studied};
use crate::traffic::{ethernet, record};

/// Returns the records as a pcapng file.
fn file(records: &[Record]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    let interface = writer.add_interface(&ethernet()[0]).unwrap();
    for one in records {
        let packet = Packet {
            interface,
            at: one.at,
            original_bytes: one.original_bytes,
            pieces: &[one.bytes.as_ref()],
            direction: None,
            comments: &[],
            custom: &[],
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap()
}

fn read(files: Vec<Vec<u8>>) -> Report {
    let mut study = Study::new(chosen()).unwrap();
    for (number, file) in files.into_iter().enumerate() {
        match Capture::from_reader(&number.to_string(), Box::new(Cursor::new(file))) {
            Ok(mut capture) => {
                study.read(&mut capture, |_| true);
            }
            Err(error) => study.refuse_source(&number.to_string(), &error.to_string()),
        }
    }
    study.finish(None)
}

#[test]
fn rotating_files_are_one_capture() {
    let clean = clean();
    for pieces in [2, 3, 7] {
        let files = clean.chunks(clean.len().div_ceil(pieces)).map(file).collect();
        assert_same_answer(&format!("{pieces} files"), &read(files));
    }
    let files = clean.chunks(5_000).rev().map(file).collect();
    assert_same_answer("in the wrong order", &read(files));
}

#[test]
fn a_damaged_file_gives_the_answer_of_what_can_be_read() {
    let whole = file(&clean());
    for share in [3, 2] {
        let cut = whole[..whole.len() / share * (share - 1) + 7].to_vec();
        let report = read(vec![cut]);
        assert_same_answer(&format!("cut at {}/{share}", share - 1), &report);
        assert!(report.sources[0].damage.is_some());
    }
    let mut torn = whole.clone();
    let middle = torn.len() / 2;
    torn[middle..middle + 4_000].fill(0xff);
    let report = read(vec![torn]);
    assert_same_answer("torn", &report);
    assert!(report.sources[0].damage.is_some());
    let halves = clean().chunks(10_000).map(file).collect::<Vec<_>>();
    let report = read(vec![halves[0].clone(), b"no capture at all".to_vec(), halves[1].clone()]);
    assert_same_answer("a foreign file", &report);
}

/// Makes the captured packet from the packet's own Ethernet frame.
type Change = fn(&[u8]) -> Vec<u8>;

/// Returns the frame with VLAN tags behind its addresses.
fn tagged(tags: &[u8], frame: &[u8]) -> Vec<u8> {
    [&frame[..12], tags, &frame[12..]].concat()
}

#[test]
fn other_links_have_the_same_answer() {
    let rows: [(&str, LinkType, Change); 5] = [
        ("VLAN", LinkType::ETHERNET, |frame| tagged(&[0x81, 0, 0, 5], frame)),
        ("QinQ", LinkType::ETHERNET, |frame| tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], frame)),
        ("raw", LinkType::RAW, |frame| frame[14..].to_vec()),
        ("IPv4", LinkType::IPV4, |frame| frame[14..].to_vec()),
        ("loopback", LinkType::NULL, |frame| [&[2, 0, 0, 0], &frame[14..]].concat()),
    ];
    for (what, link, change) in rows {
        let change = |one: Record| record(change(one.bytes.as_ref()), one.at.as_nanos());
        let records: Vec<Record> = clean().into_iter().map(change).collect();
        assert_same_answer(what, &studied(&interface(link), &records));
    }
}
