//! Directories and the sharing of their lists.

use std::sync::mpsc::channel;

use super::*;
use crate::scratch::Scratch;

#[test]
fn a_directory_has_its_names_with_marks_and_is_closed_then() {
    let scratch = Scratch::empty();
    let path = scratch.path();
    std::fs::create_dir_all(path.join("folder")).unwrap();
    std::fs::write(path.join("file"), b"").unwrap();
    let root = Root::open(path).unwrap();
    let mut opened = Opened::default();
    let lookup = Lookup { path: ".".into(), is_folder: true };
    assert_eq!(opened.find(&root, &lookup, DiskWait::Waits), Some(Ok(Found::Folder)));
    let names = opened.names(&root).unwrap();
    assert!(names.after(None).eq([&b"file"[..], b"folder/"]) && !names.is_cut());
    assert_eq!(opened.names(&root).unwrap_err(), Problem::Unreadable);
}

#[test]
fn an_index_that_is_a_directory_is_not_listed_in_place_of_its_own() {
    let scratch = Scratch::empty();
    let path = scratch.path();
    std::fs::create_dir_all(path.join("index.html/inner")).unwrap();
    let root = Root::open(path).unwrap();
    let mut opened = Opened::default();
    for (below, is_folder) in [(".", true), ("./index.html", false)] {
        let lookup = Lookup { path: below.into(), is_folder };
        assert_eq!(opened.find(&root, &lookup, DiskWait::Waits), Some(Ok(Found::Folder)));
    }
    assert!(opened.names(&root).unwrap().after(None).eq([&b"index.html/"[..]]));
}

#[test]
fn a_list_is_shared_while_it_is_held_and_the_directory_is_the_same() {
    let scratch = Scratch::empty();
    let path = scratch.path();
    let root = Root::open(path).unwrap();
    let list = || {
        let mut opened = Opened::default();
        let lookup = Lookup { path: ".".into(), is_folder: true };
        opened.find(&root, &lookup, DiskWait::Waits).unwrap().unwrap();
        opened.names(&root).unwrap()
    };
    let now = SystemTime::now();
    let changed = |at| File::open(path).unwrap().set_modified(at).unwrap();
    changed(now - Duration::from_secs(9));
    let first = list();
    assert!(Arc::ptr_eq(&first, &list()));
    std::fs::write(path.join("file"), b"").unwrap();
    changed(now - Duration::from_secs(3));
    let second = list();
    assert!(!Arc::ptr_eq(&first, &second) && second.after(None).count() == 1);
    drop((first, second));
    // A directory that is too new for its version to be settled.
    changed(now + Duration::from_secs(3_600));
    assert!(!Arc::ptr_eq(&list(), &list()));
    drop(list());
    assert!(lock(&root.lists).len() <= 1, "lists that nobody holds are forgotten");
}

fn folder() -> (Scratch, Root, File) {
    let scratch = Scratch::empty();
    let folder = File::open(scratch.path()).unwrap();
    let root = Root::open(scratch.path()).unwrap();
    (scratch, root, folder)
}

#[test]
fn a_slow_directory_holds_up_no_other() {
    let (scratch, root, slow) = folder();
    std::fs::create_dir_all(scratch.path().join("other")).unwrap();
    let other = File::open(scratch.path().join("other")).unwrap();
    let ((begun, begins), (end, ends)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        let (root, slow) = (&root, &slow);
        let wait = move |_: &File| {
            begun.send(()).unwrap();
            ends.recv().map(|()| Names::default()).map_err(|_| Problem::Unreadable)
        };
        let first = scope.spawn(move || root.names(slow, wait));
        begins.recv().unwrap();
        let (listed, lists) = channel();
        scope.spawn(move || listed.send(root.names(&other, read).is_ok()));
        let is_listed = lists.recv_timeout(Duration::from_secs(10));
        end.send(()).unwrap();
        assert_eq!(is_listed, Ok(true), "the other directory waits");
        assert!(first.join().unwrap().is_ok());
    });
}

/// Returns the largest possible list: the maximum number of names, each of the maximum length.
fn large(_: &File) -> Result<Names, Problem> {
    let mut names = Names::default();
    names.extend((0..Names::MOST).map(|number| format!("{number:0>255}").into_bytes()));
    Ok(names)
}

#[test]
fn all_lists_together_are_bounded() {
    let (_scratch, root, folder) = folder();
    // Too new to be shared.
    folder.set_modified(SystemTime::now() + Duration::from_secs(3_600)).unwrap();
    let mut held = Vec::new();
    let refused = loop {
        match root.names(&folder, large) {
            Ok(names) => held.push(names),
            Err(problem) => break problem,
        }
        assert!(held.len() < 100, "no bound");
    };
    assert_eq!(refused, Problem::Busy);
    assert!(held.iter().map(|names| names.bytes()).sum::<usize>() <= MOST_HELD_BYTES);
    held.pop();
    assert!(root.names(&folder, large).is_ok());
}

/// While another conversation holds a list, one that asks for it only checks if the names are there.
#[test]
fn a_list_counts_while_another_conversation_has_its_turn() {
    let (_scratch, root, folder) = folder();
    folder.set_modified(SystemTime::now() + Duration::from_secs(3_600)).unwrap();
    let mut held = Vec::new();
    while let Ok(names) = root.names(&folder, large) {
        held.push(names);
    }
    let turns: Vec<_> = lock(&root.lists).iter().map(|list| Arc::clone(&list.turn)).collect();
    let _taken: Vec<_> = turns.iter().map(|turn| lock(turn)).collect();
    assert_eq!(root.names(&folder, large).unwrap_err(), Problem::Busy);
}

#[test]
fn a_path_that_leads_out_is_forbidden_and_a_wrong_name_missing() {
    assert_eq!(Problem::from(Errno::XDEV), Problem::Forbidden);
    assert_eq!(Problem::from(Errno::NAMETOOLONG), Problem::Missing);
    assert_eq!(Problem::from(Errno::AGAIN), Problem::Busy);
    assert_eq!(Problem::from(io::Error::from(Errno::IO)), Problem::Unreadable);
}
