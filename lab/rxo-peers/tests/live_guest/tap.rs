//! Tests of the lab's guest on a TAP of a private network, without rxo.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::Namespace;
use rxo_testbed::traffic::Pattern;

use super::start::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_hashed_file_goes_into_a_guest_and_back", a_hashed_file_goes_into_a_guest_and_back),
    ("a_dropped_guest_is_gone_also_after_a_panic", a_dropped_guest_is_gone_also_after_a_panic),
    ("a_command_that_fails_or_hangs_is_an_error", a_command_that_fails_or_hangs_is_an_error),
    ("a_guest_that_may_not_reboot_ends", a_guest_that_may_not_reboot_ends),
];

const TAP: &str = "guest0";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const GUEST: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const BYTES: usize = 8 << 20;
/// Timeout, long enough for a slow, busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes a network with a guest on a TAP.
fn network() -> (Namespace, Guest) {
    network_with(Processor::Emulated)
}

/// Makes a network with a guest on a TAP, with this processor.
pub(crate) fn network_with(processor: Processor) -> (Namespace, Guest) {
    let network = Namespace::new("guest").unwrap();
    let image = GuestImage::find().unwrap();
    let net = GuestNet::Tap(TAP.to_owned());
    let options = GuestOptions { net, address: (GUEST, 24), number: 2, processor };
    let guest = network.run(|| Guest::boot(&image, &options)).unwrap().unwrap();
    let tap = network.interface(TAP);
    tap.add_address(HOST.into(), 24).unwrap();
    tap.up().unwrap();
    (network, guest)
}

pub(crate) fn content() -> Vec<u8> {
    Pattern::of_port(0).file(BYTES)
}

fn a_hashed_file_goes_into_a_guest_and_back() {
    let (network, mut guest) = network();
    let content = content();
    let before = guest.received_packets().unwrap();
    let hash = guest.send(&network, &content, TIMEOUT).unwrap();
    assert_eq!(hash, GuestImage::find().unwrap().hash(&content).unwrap());
    assert!(guest.received_packets().unwrap() > before);
    let back = guest.fetch(&network, HOST, TIMEOUT).unwrap();
    assert!(back == content, "{} bytes came back, and not those that went in", back.len());
}

/// Returns `true` if the process exists.
fn runs(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

fn a_dropped_guest_is_gone_also_after_a_panic() {
    let (network, guest) = network();
    let process = guest.process_id();
    assert!(fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap().contains("qemu"));
    let panicked = thread::spawn(move || {
        let _guest = guest;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(!runs(process), "QEMU survived its guest");
    assert!(!network.interface(TAP).exists(), "the TAP survived its guest");
}

fn a_command_that_fails_or_hangs_is_an_error() {
    let (_network, mut guest) = network();
    let failed = guest.run("echo no; false", TIMEOUT).unwrap_err().to_string();
    assert_eq!(failed, "a command of the guest ended with 1: no");
    assert_eq!(guest.run("echo yes", TIMEOUT).unwrap().trim(), "yes");
    let process = guest.process_id();
    let hung = guest.run("sleep 1000", Duration::from_secs(1)).unwrap_err().to_string();
    assert!(hung.starts_with("the guest did not end its command in 1s"), "{hung}");
    drop(guest);
    assert!(!runs(process));
}

fn a_guest_that_may_not_reboot_ends() {
    let (_network, mut guest) = network();
    let ended = guest.reboot().unwrap_err().to_string();
    assert!(ended.starts_with("the guest did not start before it ended"), "{ended}");
}
