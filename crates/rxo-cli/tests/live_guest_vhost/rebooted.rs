//! A guest's Linux reboots behind `rxo guest`: its machine and all other guests continue.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use super::carried::{Folder, GUEST, TIMEOUT, content};
use super::process::{Rxo, spawn};

/// The address of the steady guest: rxo's own endpoint, which receives everything without pause.
const STEADY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const STEADY_PORT: u16 = 7_000;
/// The port on which the rebooting guest receives a stream that never ends.
const POURED_PORT: u16 = 5_001;
/// The number of bytes of each file for the rebooting guest; each file takes a second or two.
const BYTES: usize = 2 << 20;
const BRIEF: Duration = Duration::from_millis(100);

/// The guest has packets in its rings when it reboots. Afterwards it receives a whole file, and the
/// continuous transfer to the other guest is intact.
pub(crate) fn a_guest_reboots_while_another_receives() {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let content = &content[..BYTES];
    let [first, second] = ["first", "second"].map(|name| folder.0.join(name));
    let ports = format!(
        "--vhost linux={},learn=yes --vhost rxo={},learn=yes",
        first.display(),
        second.display()
    );
    let (rxo, _) = Rxo::guests(lab.host(), &format!("--nic packet:wire0 {ports}"));
    let steady = format!("--nic virtio:{} --ip {STEADY}/24", second.display());
    let line = format!("sink {steady} --listen {STEADY_PORT} --hash --json --interval 0s");
    let sink = spawn(lab.host(), &line);
    let net = GuestNet::Vhost(first);
    let options =
        GuestOptions { net, address: (GUEST, 24), number: 2, processor: Processor::Emulated };
    let mut guest = Guest::boot_for_reboots(&image, &options).unwrap();
    let expected = image.hash(content).unwrap();
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let crc = thread::scope(|scope| {
        let end = End(&stop);
        let sender = scope.spawn(|| send_until(&stop, lab.peer(), &sent));
        assert_eq!(guest.send(lab.peer(), content, TIMEOUT).unwrap(), expected);
        let before = sent.load(Ordering::Relaxed);
        reboot_under_load(&mut guest, lab.peer());
        let meanwhile = sent.load(Ordering::Relaxed) - before;
        assert!(meanwhile > 1_000_000, "{meanwhile} bytes for the other while this one rebooted");
        assert_eq!(guest.send(lab.peer(), content, TIMEOUT).unwrap(), expected);
        drop(end);
        sender.join().unwrap()
    });
    received(sink, sent.into_inner(), crc);
    drop(guest);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    // The virtual machine kept its vhost connection all the time.
    assert_eq!(said.matches("first: a guest has started").count(), 1, "{said}");
}

/// Reboots while the peer sends to the guest continuously.
fn reboot_under_load(guest: &mut Guest, peer: &Namespace) {
    let boot = |guest: &mut Guest| guest.run("cat /proc/sys/kernel/random/boot_id", TIMEOUT);
    let before = boot(guest).unwrap();
    guest.run(&format!("nc -l -p {POURED_PORT} >/dev/null &"), TIMEOUT).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&stop);
        let stream = connect(peer, GUEST, POURED_PORT);
        scope.spawn(|| pour_until(&stop, stream));
        guest.reboot().unwrap();
        drop(end);
    });
    assert_ne!(boot(guest).unwrap(), before, "it is another boot");
}

/// Writes until `stop` is set, or the other side resets the connection.
fn pour_until(stop: &AtomicBool, mut stream: TcpStream) {
    stream.set_write_timeout(Some(BRIEF)).unwrap();
    while !stop.load(Ordering::Relaxed) {
        match stream.write(&[7; 16_384]) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return,
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Sends to the steady guest until `stop` is set. Returns the CRC of the sent bytes, and counts them in
/// `sent`.
fn send_until(stop: &AtomicBool, peer: &Namespace, sent: &AtomicU64) -> u32 {
    let (mut stream, mut crc) = (connect(peer, STEADY, STEADY_PORT), crc32fast::Hasher::new());
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    let mut chunk = [0; 16_384];
    for n in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        chunk
            .iter_mut()
            .zip(n..)
            .for_each(|(byte, at)| *byte = (at.wrapping_mul(2_654_435_761) >> 24) as u8);
        stream.write_all(&chunk).unwrap();
        crc.update(&chunk);
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        // The pause leaves processor time to the emulated guest.
        thread::sleep(Duration::from_millis(2));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    crc.finalize()
}

/// Sets a thread's stop flag on drop, also after a failed test, because its scope waits for the thread.
struct End<'s>(&'s AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Connects as soon as a process listens there.
fn connect(peer: &Namespace, address: Ipv4Addr, port: u16) -> TcpStream {
    let begun = Instant::now();
    loop {
        match peer.run(|| TcpStream::connect((address, port))).unwrap() {
            Ok(stream) => return stream,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{address}: {error}"),
        }
        thread::sleep(BRIEF);
    }
}

/// Checks that the sink received this many bytes with this CRC.
fn received(sink: Child, bytes: u64, crc: u32) {
    let output = sink.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_else(|| panic!("the sink said nothing: {said}"));
    let totals: Value = serde_json::from_str(last).unwrap();
    let got = (totals["bytes"].as_u64(), totals["ends"][0]["crc32"].as_str());
    assert_eq!(got, (Some(bytes), Some(format!("{crc:08x}").as_str())), "{said}");
}
