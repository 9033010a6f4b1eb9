//! Files that change while they are sent, or shortly before.

use std::os::unix::fs::MetadataExt;

use super::*;

/// A file that changes while it is sent causes a reset. The client has received a part of the first version,
/// and the reset shows that this is incomplete.
#[test]
fn a_file_that_changes_while_it_is_sent_resets_its_answer() {
    let rewritten = |path: &std::path::Path| fs::write(path, large(5)).unwrap();
    let shrunk = |path: &std::path::Path| {
        File::options().write(true).open(path).unwrap().set_len(100_000).unwrap();
    };
    let grown = |path: &std::path::Path| {
        File::options().append(true).open(path).unwrap().write_all(b"more").unwrap();
    };
    let changes: [&dyn Fn(&std::path::Path); 3] = [&rewritten, &shrunk, &grown];
    for change in changes {
        let scratch = Scratch::new(&[("file", &large(3))]);
        let mut hall = Hall::new(&scratch, RULES);
        let guest = hall.comes(ASK, 80_000);
        hall.settle();
        change(&scratch.path().join("file"));
        hall.takes(&guest, MUCH);
        assert!(guest.is_gone() && guest.end.borrow().is_reset);
        let content = guest.content();
        assert!(content == large(3)[..content.len()] && content.len() < 300_001, "mixed");
        assert!(!hall.logged[0].1.is_complete);
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_sent_comes_whole_and_the_next_is_the_new_one() {
    let scratch = Scratch::new(&[("file", &large(3)), ("other", &large(5))]);
    let mut hall = Hall::new(&scratch, RULES);
    let first = hall.comes(ASK, 80_000);
    hall.settle();
    fs::rename(scratch.path().join("other"), scratch.path().join("file")).unwrap();
    let second = hall.comes(ASK, MUCH);
    hall.settle();
    hall.takes(&first, MUCH);
    assert!(first.content() == large(3) && second.content() == large(5));
}

/// The file system's clock may give the next change the same time, so the file is not read before that is
/// impossible.
#[test]
fn a_file_that_has_just_changed_is_waited_for() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    hall.date = changed(&scratch) + Duration::from_millis(5);
    let guest = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(guest.heard().is_empty() && hall.server.poll_at(hall.now) > Some(hall.now));
    // The change has the same time or a later one; both are detected.
    fs::write(scratch.path().join("file"), large(5)).unwrap();
    // A clock of whole seconds takes longer to settle.
    hall.later(Duration::from_secs(2));
    assert!(guest.is_gone() && guest.end.borrow().is_reset);
    hall.date = changed(&scratch) + Duration::from_secs(1_000);
    let again = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(again.content() == large(5));
}

#[test]
fn a_file_of_the_same_size_and_time_is_another_one_if_it_was_changed() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    let first = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(first.content() == large(3));
    let before = changed(&scratch);
    let deadline = Instant::now() + Duration::from_secs(60);
    while changed(&scratch) == before {
        assert!(Instant::now() < deadline, "the clock stands");
        // Sets the modification time that the file had before.
        scratch.file("file", &large(5));
    }
    let second = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(second.content() == large(5), "the old file out of the cache");
}

/// If the file system's clock is hours ahead, nothing is cached, so no later answer gets old data.
#[test]
fn a_file_from_the_future_is_read_again_each_time() {
    let scratch = Scratch::new(&[("file", &large(3))]);
    let mut hall = Hall::new(&scratch, RULES);
    hall.date = changed(&scratch) - Duration::from_secs(3_600);
    let guest = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(guest.content() == large(3) && hall.server.shared.pages.is_empty());
    hall.date += Duration::from_secs(7_200);
    let later = hall.comes(ASK, MUCH);
    hall.settle();
    assert!(later.content() == large(3) && !hall.server.shared.pages.is_empty());
}

/// Returns the time of the last change of anything in the file (`ctime`).
fn changed(scratch: &Scratch) -> SystemTime {
    let file = fs::metadata(scratch.path().join("file")).unwrap();
    UNIX_EPOCH + Duration::new(file.ctime() as u64, file.ctime_nsec() as u32)
}
