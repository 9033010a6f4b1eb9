//! Kills rxo or QEMU with SIGKILL at random instants of a transfer: the other side continues with the next
//! instance.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::Lab;

use super::carried::{Folder, GUEST, TIMEOUT, content};
use super::process::{Rxo, wait_until};

/// Number of times that each side is killed.
const TIMES: u32 = 4;

/// Waits until a random part of the content, at most half, has crossed the wire beyond the first `before`
/// bytes.
fn await_a_part(lab: &Lab, before: u64, content: &[u8]) -> u64 {
    let part = 1_500 + RandomState::new().hash_one(0) % (content.len() as u64 / 2);
    wait_until("a part has crossed the wire", || received_bytes(lab) >= before + part);
    part
}

fn received_bytes(lab: &Lab) -> u64 {
    lab.host().interface(Lab::WIRE_INTERFACE).counters().unwrap().received_bytes
}

fn boot(image: &GuestImage, socket: &Path) -> Guest {
    let net = GuestNet::Vhost(socket.to_owned());
    let options =
        GuestOptions { net, address: (GUEST, 24), number: 2, processor: Processor::Emulated };
    Guest::boot(image, &options).unwrap()
}

/// Kills both processes of a run, so that no cleanup happens.
fn kill(rxo: &Rxo) {
    let worker = rxo.worker();
    // Stopped first, so that it does not notice the worker's end.
    rxo.signal("STOP");
    rxo.signal_worker("KILL");
    rxo.signal("KILL");
    wait_until("the worker ends", || !Path::new(&format!("/proc/{worker}")).exists());
}

/// Ends a run, which must leave nothing in the folder. Returns its standard error.
fn end(rxo: Rxo, folder: &Folder) -> String {
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(folder.0.read_dir().unwrap().count(), 0, "a file is left");
    said
}

/// The next run replaces the socket, QEMU reconnects, and the connection continues.
pub(crate) fn a_transfer_survives_rxo_being_killed() {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let (socket, expected) = (folder.0.join("vm.sock"), image.hash(&content).unwrap());
    let flags = format!("--nic packet:wire0 --host vhost:{}", socket.display());
    let start = || Rxo::start(lab.host(), &flags).0;
    let mut rxo = start();
    let mut guest = boot(&image, &socket);
    for _ in 0..TIMES {
        let before = received_bytes(&lab);
        let (sent, after) = thread::scope(|scope| {
            let sent = scope.spawn(|| guest.send(lab.peer(), &content, TIMEOUT));
            let after = await_a_part(&lab, before, &content);
            kill(&rxo);
            // The killed run's socket may still exist: another process removes it a moment later.
            rxo = start();
            (sent.join().unwrap(), after)
        });
        assert_eq!(sent.unwrap(), expected, "rxo was killed after {after} bytes");
    }
    drop(guest);
    end(rxo, &folder);
}

/// rxo notices the end of QEMU, and serves the next machine.
pub(crate) fn the_next_guest_is_served_after_qemu_was_killed() {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let socket = folder.0.join("vm.sock");
    let flags = format!("--nic packet:wire0 --vhost vm={},mac=52:54:00:00:00:02", socket.display());
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    for _ in 0..TIMES {
        let mut guest = boot(&image, &socket);
        let qemu = guest.process_id().to_string();
        // The rest is never acknowledged.
        let (before, briefly) = (received_bytes(&lab), Duration::from_secs(10));
        thread::scope(|scope| {
            let sent = scope.spawn(|| guest.send(lab.peer(), &content, briefly));
            await_a_part(&lab, before, &content);
            assert!(Command::new("kill").args(["-KILL", &qemu]).status().unwrap().success());
            sent.join().unwrap().unwrap_err();
        });
    }
    let mut guest = boot(&image, &socket);
    let hash = guest.send(lab.peer(), &content, TIMEOUT).unwrap();
    assert_eq!(hash, image.hash(&content).unwrap());
    drop(guest);
    let said = end(rxo, &folder);
    let lines = |part: &str| said.lines().filter(|line| line.contains(part)).count() as u32;
    assert_eq!(lines("a guest has started"), TIMES + 1, "{said}");
    assert!(lines("the guest has gone") >= TIMES, "{said}");
}
