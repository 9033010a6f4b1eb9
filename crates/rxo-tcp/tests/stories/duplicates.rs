//! Reports of duplicate text (RFC 2883).

use rxo_tcp::Config;

use crate::dsl::*;

/// RFC 2883, section 4 (d): the first duplicate part is reported, not a later one.
#[test]
fn the_first_duplicate_part_is_reported() {
    let mut scene = Scene::established(with_sack());
    scene.gets(seg().len(99));
    scene.answers(seg().seq(200).len(100));
    assert_eq!(scene.answers(seg().len(799)), [". 1:1 ack 800 sack 1-100"]);
}

/// RFC 2883, section 4 (a): a duplicate is reported completely, also if it was kept in two pieces.
#[test]
fn all_of_a_duplicate_is_reported() {
    let mut scene = Scene::established(with_sack());
    scene.answers(seg().seq(1001).len(MSS));
    scene.answers(seg().seq(2001).len(MSS));
    let again = scene.answers(seg().seq(1001).len(2 * MSS));
    assert_eq!(again, [". 1:1 ack 1 sack 1001-3001,1001-3001"]);
}

/// RFC 2883, section 4 (d): of two duplicate parts with a gap between them, the first is reported.
#[test]
fn of_two_parts_the_first_is_reported() {
    let mut scene = Scene::established(with_sack());
    scene.answers(seg().seq(1001).len(500));
    scene.answers(seg().seq(2001).len(500));
    let again = scene.answers(seg().seq(1001).len(2_000));
    assert_eq!(again, [". 1:1 ack 1 sack 1001-1501,1001-3001"]);
}

/// RFC 2883, section 4 (a): with two duplicate segments in one poll, each acknowledgement reports its own,
/// and none both.
#[test]
fn each_acknowledgement_reports_its_own_duplicate() {
    let mut scene = Scene::established(with_sack());
    scene.gets_aggregate((0..4).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    scene.out();
    scene.gets_aggregate([seg().len(MSS), seg().seq(1001).len(MSS), seg().seq(4001).len(MSS)]);
    let reported = [". 1:1 ack 4001 sack 1-1001", ". 1:1 ack 4001 sack 1001-2001"];
    assert_eq!(scene.out(), reported);
    assert_eq!(scene.after(ms(40)), [". 1:1 ack 5001"]);
}

/// RFC 2883, section 4 (a): the segments after a duplicate in an aggregate do not report it again.
#[test]
fn a_template_does_not_repeat_a_duplicate() {
    let mut scene = Scene::established(with_sack());
    scene.gets(seg().len(MSS));
    scene.gets_aggregate((0..6).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    let reported = ". 1:1 ack 1001 sack 1-1001";
    assert_eq!(scene.out(), [reported, ". 1:1 ack 3001", ". 1:1 ack 5001"]);
}

/// RFC 2883, section 4 (a): a segment with an old timestamp is reported as well.
#[test]
fn an_old_duplicate_is_reported() {
    let mut scene = Scene::established(Config { timestamps: true, ..with_sack() });
    scene.gets(seg().len(MSS).ts(10, 0));
    scene.gets(seg().seq(1001).len(MSS).ts(20, 0));
    scene.out();
    let again = scene.answers(seg().len(MSS).ts(5, 0));
    assert_eq!(again, [". 1:1 ack 2001 sack 1-1001"]);
}

/// RFC 2883, section 4: a segment without text is no duplicate, whatever its sequence number. The next
/// acknowledgement has no empty block.
#[test]
fn a_segment_without_text_is_no_duplicate() {
    let mut scene = Scene::established(with_sack());
    scene.answers(seg().seq(1_001).len(MSS));
    assert_eq!(scene.answers(seg().seq(1_101)), [""; 0]);
    assert_eq!(scene.answers(seg().seq(3_001).len(10)), [". 1:1 ack 1 sack 3001-3011,1001-2001"]);
}
