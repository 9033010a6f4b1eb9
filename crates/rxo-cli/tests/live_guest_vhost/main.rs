//! `rxo run --host vhost:PATH` and a real Linux guest behind it, in an emulated machine; `rxo guest try`.
//!
//! Needs QEMU, busybox and a kernel; `cargo xtask test --guests` runs it. What is missing is an error that
//! names it.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[allow(dead_code, reason = "the other live tests use the rest")]
#[path = "../live/process.rs"]
mod process;
mod trial;
mod xen;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use process::{Rxo, run};
use rxo_lab::{Guest, GuestImage, GuestNet, GuestOptions, Lab, Processor};

const TESTS: &[(&str, fn())] = &[
    ("a_hashed_file_crosses_rxo_into_a_linux_guest_and_back", || carried("")),
    ("adaptive_hold_carries_it_too", || carried("--hold auto")),
    ("the_line_that_rxo_prints_starts_a_guest", printed),
    ("the_xen_experiment_counts_a_guest", xen::the_experiment_counts_a_guest),
    ("the_xen_experiment_names_what_is_missing", xen::the_experiment_names_what_is_missing),
    (
        "two_linux_guests_get_a_file_and_send_it_back",
        trial::two_linux_guests_get_a_file_and_send_it_back,
    ),
    (
        "a_number_of_guests_out_of_range_is_one_line",
        trial::a_number_of_guests_out_of_range_is_one_line,
    ),
];

const GUEST: Ipv4Addr = Lab::HOST_ADDRESSES.0;
const PEER: Ipv4Addr = Lab::PEER_ADDRESSES.0;
const BYTES: usize = 8 << 20;
/// Long enough for a slow machine with other work.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // A missing kernel is downloaded, which in a user namespace is not possible.
    if let Err(error) = GuestImage::find() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = rxo_lab::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let trials = TESTS.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The folder of a socket. It is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-linux-guest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes that do not repeat soon.
fn content() -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(next).take(BYTES).collect()
}

/// QEMU is started by the line of `rxo guest`, word for word. QEMU would refuse the guest's name as an
/// identifier.
fn printed() {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let socket = folder.0.join("vm.sock");
    let vhost = format!("7/web={},mac=52:54:00:00:00:02", socket.display());
    let flags = format!("--nic packet:wire0 --vhost {vhost}");
    let shown = run(lab.host(), &format!("guest {flags} --dry-run"));
    let text = String::from_utf8(shown.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("7/web: ")).unwrap();
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let net = GuestNet::Line(line.to_owned());
    let options =
        GuestOptions { net, address: (GUEST, 24), number: 2, processor: Processor::Emulated };
    let mut guest = Guest::boot(&image, &options).unwrap();
    let hash = guest.send(lab.peer(), &content, PATIENCE).unwrap();
    assert_eq!(hash, image.hash(&content).unwrap());
    drop(guest);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

/// A file goes from the peer's Linux through `rxo run` with these flags into a guest's Linux, and back.
fn carried(flags: &str) {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let socket = folder.0.join("vm.sock");
    let line = format!("--nic packet:wire0 --host vhost:{} {flags}", socket.display());
    let (rxo, _) = Rxo::start(lab.host(), &line);
    let net = GuestNet::Vhost(socket);
    let options =
        GuestOptions { net, address: (GUEST, 24), number: 2, processor: Processor::Emulated };
    let mut guest = Guest::boot(&image, &options).unwrap();
    let hash = guest.send(lab.peer(), &content, PATIENCE).unwrap();
    assert_eq!(hash, image.hash(&content).unwrap());
    let packets = guest.received_packets().unwrap();
    let frames = (BYTES / 1_448) as u64;
    assert!(packets < frames, "{packets} packets for {frames} frames: nothing was coalesced");
    let back = guest.fetch(lab.peer(), PEER, PATIENCE).unwrap();
    assert!(back == content, "{} bytes came back, and not those that went in", back.len());
    drop(guest);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}
