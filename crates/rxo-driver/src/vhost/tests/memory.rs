//! Tests of the memory that a front end may share, and of the parts of it that the device maps.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use super::{GuestMemory, MEMORY_BYTES, Stage, TIMEOUT, USER, region, start};
use crate::vhost_user::features::VERSION_1;
use crate::vhost_user::{Channel, Region, Request, SharedRegion};
use crate::virtio_net::mapping::{memory_file, unsealed_file};

/// Returns the region that follows the first one in the same file.
fn second() -> Region {
    Region {
        guest_address: MEMORY_BYTES,
        bytes: MEMORY_BYTES,
        user_address: USER + MEMORY_BYTES,
        file_offset: MEMORY_BYTES,
    }
}

fn send_table(front: &mut Channel, regions: &[Region], file: &impl AsFd) {
    let file = || file.as_fd().try_clone_to_owned().unwrap();
    let shared = |region: &Region| SharedRegion { region: *region, file: file() };
    front.request(&Request::SetMemTable(regions.iter().map(shared).collect()), false).unwrap();
}

/// Returns the device's notice about a front end that shares these regions of `file`.
fn said(stage: &mut Stage, regions: &[Region], file: &impl AsFd) -> Option<String> {
    let mut front = stage.connect();
    let features = [Request::<OwnedFd>::SetOwner, Request::SetFeatures(VERSION_1)];
    features.iter().for_each(|request| front.request(request, false).unwrap());
    send_table(&mut front, regions, file);
    let said = stage.turn();
    assert_eq!(front.receive().is_err(), !said.is_empty(), "{said:?}");
    drop(front);
    stage.turn();
    said.into_iter().next_back()
}

#[test]
fn the_sum_of_the_regions_is_bounded() {
    let allowed = GuestMemory { most_bytes: Some(2 * MEMORY_BYTES - 1), ..GuestMemory::default() };
    let mut stage = Stage::allowing("sum", allowed);
    let file = memory_file(2 * MEMORY_BYTES).unwrap();
    assert_eq!(said(&mut stage, &[region()], &file), None);
    let line = said(&mut stage, &[region(), second()], &file).unwrap();
    assert!(line.contains("shares 131072 bytes of memory and 131071 are allowed"), "{line}");
    assert_eq!(said(&mut stage, &[second()], &file), None, "the limit is of each front end");
}

/// The pages in the holes would be charged to this process.
#[test]
fn memory_with_holes_is_refused_unless_allowed() {
    let file = File::from(unsealed_file(2 * MEMORY_BYTES));
    file.write_all_at(&vec![0; MEMORY_BYTES as usize], 0).unwrap();
    for may_be_sparse in [false, true] {
        let mut stage =
            Stage::allowing("holes", GuestMemory { may_be_sparse, ..GuestMemory::default() });
        assert_eq!(said(&mut stage, &[region()], &file), None);
        let line = said(&mut stage, &[region(), second()], &file);
        assert_eq!(line.is_some(), !may_be_sparse, "{line:?}");
        assert!(line.is_none_or(|line| line.contains("has holes")));
        assert_eq!(file.metadata().unwrap().blocks() * 512, MEMORY_BYTES, "nothing was filled");
    }
}

/// Returns the addresses at which this process has mapped `file`.
fn mapped(file: &OwnedFd) -> Vec<String> {
    let number = File::from(file.try_clone().unwrap()).metadata().unwrap().ino().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let is_of = |line: &&str| line.split_whitespace().nth(4) == Some(&number);
    let lines = maps.lines().filter(is_of);
    lines.map(|line| line.split_once(' ').unwrap().0.to_owned()).collect()
}

/// Waits until this process has mapped `file` `times` times. Returns the addresses.
fn mapped_times(file: &OwnedFd, times: usize) -> Vec<String> {
    let begun = std::time::Instant::now();
    loop {
        let mapped = mapped(file);
        if mapped.len() == times {
            return mapped;
        }
        assert!(begun.elapsed() < TIMEOUT, "{mapped:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A front end may send its table of regions again and again. A repeated region must stay mapped, because
/// mapping it again each time would keep the device busy.
#[test]
fn a_region_that_a_new_table_repeats_stays_mapped() {
    let (mut stage, files) =
        (Stage::new("repeated"), [(); 2].map(|()| memory_file(2 * MEMORY_BYTES)));
    let [file, other] = files.map(Result::unwrap);
    let mut front = stage.connect();
    let mut requests = start();
    let own = SharedRegion { region: region(), file: file.try_clone().unwrap() };
    requests[2] = Request::SetMemTable(vec![own]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    assert!(stage.turn().last().unwrap().ends_with("a guest has started"));
    let first = mapped(&file);
    assert_eq!(first.len(), 1);
    send_table(&mut front, &[region(), second()], &file);
    stage.turn();
    let both = mapped(&file);
    assert!(both.len() == 2 && both.contains(&first[0]), "{first:?}, {both:?}");
    send_table(&mut front, &[region()], &file);
    stage.turn();
    assert_eq!(mapped_times(&file, 1), first);
    // The same addresses, another file.
    send_table(&mut front, &[region()], &other);
    stage.turn();
    assert_eq!(mapped(&other).len(), 1);
    mapped_times(&file, 0);
    // No memory remains when the front end has gone. A separate thread frees its pages.
    drop(front);
    stage.turn();
    mapped_times(&other, 0);
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    assert!(names.flatten().any(|name| name.trim() == "rxo-unmapper"));
}

/// Neither a core file nor a forked process contains memory of guests.
#[test]
fn memory_of_guests_is_private() {
    let (mut stage, file) = (Stage::new("private"), memory_file(MEMORY_BYTES).unwrap());
    let mut front = stage.connect();
    send_table(&mut front, &[region()], &file);
    stage.turn();
    let range = mapped(&file).pop().unwrap();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let flags = maps.lines().skip_while(|line| !line.starts_with(&range));
    let flags = flags.skip(1).find(|line| line.starts_with("VmFlags:")).unwrap();
    for flag in [" dd", " dc"] {
        assert!(flags.contains(flag), "{flags}");
    }
}
