//! The file under the name of the output, in whatever way the command ends.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::world::{Folder, mixed, pcap, records};

#[test]
fn of_a_damaged_capture_what_was_read_is_written_and_the_code_says_so() {
    let folder = Folder::new("damaged");
    let whole = pcap(&mixed(2, 60));
    folder.write("cut.pcap", &whole[..whole.len() / 2]);
    let (_, said) = folder.rxo("coalesce cut.pcap out.pcapng", 3);
    assert!(said.contains("cut.pcap ends too early at byte"), "{said}");
    folder.rxo("expand out.pcapng back.pcap", 0);
    assert!(folder.read("back.pcap") == whole[..whole.len() / 2]);
    let coalesced = folder.read("out.pcapng");
    folder.write("half.pcapng", &coalesced[..coalesced.len() / 2]);
    let (_, said) = folder.rxo("expand half.pcapng half.pcap", 3);
    assert!(said.contains("half.pcapng ends too early"), "{said}");
    let [half, all] = ["half.pcap", "cut.pcap"].map(|name| records(&folder.0.join(name)).0);
    assert!(half.len() > 10 && half.len() < all.len());
    assert!(folder.read("cut.pcap").starts_with(&folder.read("half.pcap")));
}

#[test]
fn a_changed_file_is_refused_and_nothing_is_written() {
    let folder = Folder::new("changed");
    folder.write("in.pcap", &pcap(&mixed(1, 40)));
    folder.rxo("coalesce in.pcap out.pcapng --policy remember", 0);
    let mut coalesced = folder.read("out.pcapng");
    // A byte in the last packet's payload or close to it, but not in the end of its block.
    let place = coalesced.len() - 200;
    coalesced[place] ^= 0x10;
    folder.write("out.pcapng", &coalesced);
    let (_, said) = folder.rxo("expand out.pcapng back.pcap", 1);
    assert!(said.contains("out.pcapng") && said.contains("changed since"), "{said}");
    assert_eq!(folder.names(), ["in.pcap", "out.pcapng"]);
}

#[test]
fn standard_input_is_read() {
    let folder = Folder::new("stdin");
    let file = pcap(&mixed(2, 40));
    let mut child = spawn(&folder, "coalesce - out.pcapng");
    child.stdin.take().unwrap().write_all(&file).unwrap();
    assert!(child.wait().unwrap().success());
    folder.rxo("expand out.pcapng back.pcap", 0);
    assert!(folder.read("back.pcap") == file);
}

#[test]
fn killed_half_way_it_leaves_nothing_under_the_name() {
    let folder = Folder::new("killed");
    let (mut child, _) = half_way(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.names().contains(&"out.pcapng".to_owned()), "{:?}", folder.names());
}

#[test]
fn interrupted_it_writes_what_was_read() {
    let folder = Folder::new("interrupted");
    let (mut child, file) = half_way(&folder);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(open);
    assert_eq!(folder.names(), ["out.pcapng"]);
    folder.rxo("expand out.pcapng back.pcap", 0);
    let back = folder.read("back.pcap");
    assert!(back.len() > 100_000 && file.starts_with(&back), "{} bytes", back.len());
}

fn spawn(folder: &Folder, line: &str) -> Child {
    let mut command = folder.command(line);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts the command, writes a part of its input, and waits until it has begun the output.
fn half_way(folder: &Folder) -> (Child, Vec<u8>) {
    let file = pcap(&mixed(5, 400));
    let mut child = spawn(folder, "coalesce - out.pcapng");
    let input = child.stdin.as_mut().unwrap();
    input.write_all(&file[..file.len() / 10 * 9]).unwrap();
    input.flush().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while folder.names().is_empty() {
        assert!(Instant::now() < until, "the output is not begun");
        sleep(Duration::from_millis(10));
    }
    (child, file)
}
