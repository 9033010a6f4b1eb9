//! A guest is migrated between the machines of two `rxo guest`, and back, while it receives a stream and
//! sends a frame every few milliseconds.
//!
//! The hash of the stream must be right. The time without a frame is printed. Beside it is the time of the
//! same migration with a TAP in place of rxo, which is the part that QEMU and its emulated processor cause.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Migration, Processor};
use rxo_testbed::{Interface, Lab, create_veth};

use super::carried::{Folder, GUEST, TIMEOUT};
use super::process::{Rxo, wait_until};

const PEER: Ipv4Addr = Lab::PEER_ADDRESSES.0;
const PORT: u16 = 5_000;
/// Number of migrations, there and back in turn.
const TIMES: usize = 4;

pub(crate) fn a_guest_is_migrated_under_load() {
    let image = GuestImage::find().unwrap();
    let (lab, folder) = (Lab::through().unwrap(), Folder::new());
    let host = lab.host();
    let bridge = host.interface("hosts0");
    bridge.create_bridge().unwrap();
    bridge.up().unwrap();
    let ports = ["first", "second"].map(|name| {
        let [port, nic] = ["p", "n"].map(|end| format!("{end}-{name}"));
        let (port, nic) = (host.interface(&port), host.interface(&nic));
        create_veth(&port, &nic).unwrap();
        port.join_bridge(&bridge).unwrap();
        [&port, &nic].into_iter().for_each(|end| end.up().unwrap());
        nic.name().to_owned()
    });
    host.interface(Lab::WIRE_INTERFACE).join_bridge(&bridge).unwrap();
    let sockets = ["first", "second"].map(|name| folder.0.join(name));
    let runs = ports.iter().zip(&sockets).map(|(nic, socket)| {
        let socket = socket.display();
        let guest = format!("--vhost vm={socket},mac=52:54:00:00:00:02");
        Rxo::guests(host, &format!("--nic packet:{nic} {guest}")).0
    });
    let runs: Vec<Rxo> = runs.collect();
    let by_rxo = migrated(
        &lab,
        &image,
        &Nets { net: |n: usize| vhost(sockets[n % 2].as_path()), joins: &|_| () },
    );
    for rxo in runs {
        rxo.signal("INT");
        let (code, _, said) = rxo.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("a guest has started") && !said.contains("does not cover"), "{said}");
    }
    let joins = |n: usize| join_when_there(&host.interface(&tap(n)), &bridge);
    let by_tap =
        migrated(&lab, &image, &Nets { net: |n: usize| GuestNet::Tap(tap(n)), joins: &joins });
    for (name, moves) in [("rxo", by_rxo), ("a TAP", by_tap)] {
        let shown: Vec<_> = moves.iter().map(Move::text).collect();
        println!("with {name}: {}", shown.join("; "));
    }
}

fn vhost(socket: &Path) -> GuestNet {
    GuestNet::Vhost(socket.to_owned())
}

fn tap(n: usize) -> String {
    format!("vmtap{n}")
}

/// Adds `tap` to the bridge once QEMU has created it.
fn join_when_there(tap: &Interface<'_>, bridge: &Interface<'_>) {
    wait_until("QEMU has made its TAP", || tap.join_bridge(bridge).is_ok());
    tap.up().unwrap();
}

/// The cards of a guest's machines, by the number of the machine.
struct Nets<'j, N> {
    net: N,
    /// The function that connects the card of a machine that is starting.
    joins: &'j (dyn Fn(usize) + Sync),
}

/// One migration, and the longest time in which no frame of the guest arrived.
struct Move {
    migration: Migration,
    gap: Duration,
}

impl Move {
    fn text(&self) -> String {
        let Migration { stopped, took } = self.migration;
        format!("{:?} without a frame (QEMU stopped it for {stopped:?} of {took:?})", self.gap)
    }
}

/// Migrates a guest [`TIMES`] times while it receives a stream, whose hash must be right.
fn migrated(
    lab: &Lab,
    image: &GuestImage,
    nets: &Nets<'_, impl Fn(usize) -> GuestNet + Sync>,
) -> Vec<Move> {
    let options = |n: usize| GuestOptions {
        net: (nets.net)(n),
        address: (GUEST, 24),
        number: 2,
        processor: Processor::Emulated,
    };
    let mut guest = thread::scope(|scope| {
        scope.spawn(|| (nets.joins)(0));
        // QEMU makes a TAP in the network of this thread.
        lab.host().run(|| Guest::boot_for_migration(image, &options(0))).unwrap().unwrap()
    });
    guest.run(&format!("ping -q -i 0.004 {PEER} >/dev/null &"), TIMEOUT).unwrap();
    guest.start(&format!("nc -l -p {PORT} | sha256sum")).unwrap();
    let stop = AtomicBool::new(false);
    let (moves, sent) = thread::scope(|scope| {
        let end = End(&stop);
        let sender = scope.spawn(|| send_until(&stop, lab));
        let mut moves = Vec::new();
        for n in 1..=TIMES {
            thread::sleep(BETWEEN);
            moves.push(move_once(
                &mut guest,
                lab,
                || (nets.joins)(n),
                |guest| lab.host().run(|| guest.migrate(image, &options(n))).unwrap().unwrap(),
            ));
        }
        thread::sleep(BETWEEN);
        drop(end);
        (moves, sender.join().unwrap())
    });
    assert!(sent.len() > TIMES * 100_000, "{} bytes were sent", sent.len());
    let hash = guest.finish(TIMEOUT).unwrap();
    assert_eq!(hash.split_whitespace().next(), Some(image.hash(&sent).unwrap().as_str()));
    moves
}

fn move_once(
    guest: &mut Guest,
    lab: &Lab,
    join: impl Fn() + Sync,
    migrate: impl Fn(&mut Guest) -> Migration,
) -> Move {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&stop);
        let gap = scope.spawn(|| longest_gap(&stop, lab));
        scope.spawn(&join);
        let migration = migrate(guest);
        // The frames after the migration end the gap.
        thread::sleep(BETWEEN);
        drop(end);
        Move { migration, gap: gap.join().unwrap() }
    })
}

/// Measures the longest time in which the peer received no echo request of the guest.
fn longest_gap(stop: &AtomicBool, lab: &Lab) -> Duration {
    lab.peer()
        .run(|| {
            let (mut last, mut seen, mut longest) = (Instant::now(), echoes(), Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                let now = echoes();
                if now != seen {
                    longest = longest.max(last.elapsed());
                    (last, seen) = (Instant::now(), now);
                }
            }
            longest.max(last.elapsed())
        })
        .unwrap()
}

/// Returns the number of echo requests that the network of this thread has received.
fn echoes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Icmp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let of = names.split(' ').position(|name| name == "InEchos").unwrap();
    values.split(' ').nth(of).unwrap().parse().unwrap()
}

/// Sends to the guest until `stop` is set. Returns the bytes sent.
fn send_until(stop: &AtomicBool, lab: &Lab) -> Vec<u8> {
    let (mut stream, mut sent) = (connect(lab), Vec::new());
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    for n in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let chunk = (n..n + 4_096).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
        let from = sent.len();
        sent.extend(chunk);
        stream.write_all(&sent[from..]).unwrap();
        // The pause leaves processor time to the emulated guest.
        thread::sleep(Duration::from_millis(2));
    }
    sent
}

/// Connects as soon as the guest listens.
fn connect(lab: &Lab) -> TcpStream {
    let begun = Instant::now();
    loop {
        match lab.peer().run(|| TcpStream::connect((GUEST, PORT))).unwrap() {
            Ok(stream) => return stream,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The duration of the traffic before and after each migration.
const BETWEEN: Duration = Duration::from_millis(700);

/// Sets a thread's stop flag on drop, also after a failed test, because its scope waits for the thread.
struct End<'s>(&'s AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
