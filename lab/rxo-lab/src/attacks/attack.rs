//! The attacks, each as a function that goes on until it is stopped.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::net::sockopt::set_socket_linger;
use rxo_driver::vhost_user::features::{CSUM, HOST_TSO4};
use rxo_driver::vhost_user::{Channel, Region, Request, SharedRegion};
use rxo_frame::Instant;
use rxo_testkit::seg;

use super::front::{Frames, Front, allocated};
use super::{ATTACKER, neighbour};

/// An attack of one guest.
pub(super) struct Attack {
    /// Its name in `--only`.
    pub(super) key: &'static str,
    /// A description of what the guest does, for the table.
    pub(super) what: &'static str,
    pub(super) run: fn(&Path, &AtomicBool),
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack { key: "none", what: "nothing", run: |_, _| {} },
    Attack {
        key: "block",
        what: "makes its notification block",
        run: |path, stop| again(stop, || block(path, stop)),
    },
    Attack {
        key: "linger",
        what: "sends ten descriptors, the ninth a socket whose closing takes 14 s",
        run: |path, stop| _ = linger(path, stop),
    },
    Attack {
        key: "chains",
        what: "sends frames of 4,096 descriptors each",
        run: |path, stop| again(stop, || chains(path, stop)),
    },
    Attack {
        key: "broadcasts",
        what: "broadcasts GSO frames of 60 kB",
        run: |path, stop| again(stop, || broadcasts(path, stop)),
    },
    Attack {
        key: "flood",
        what: "floods the wire with small frames",
        run: |path, stop| again(stop, || flood(path, stop)),
    },
    Attack {
        key: "features",
        what: "repeats `SET_FEATURES`",
        run: |path, stop| again(stop, || repeat(path, stop, |front| front.features(0))),
    },
    Attack {
        key: "memory",
        what: "repeats `SET_MEM_TABLE`",
        run: |path, stop| again(stop, || repeat(path, stop, Front::share)),
    },
    Attack {
        key: "end",
        what: "comes and ends with 512 MiB, again and again",
        run: |path, stop| again(stop, || end(path)),
    },
];

/// Repeats `attack` until `stop` is set. An attempt ends when the device closes the connection.
fn again(stop: &AtomicBool, mut attack: impl FnMut() -> Result<()>) {
    while !stop.load(Ordering::Relaxed) {
        if attack().is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn block(path: &Path, stop: &AtomicBool) -> Result<()> {
    let front = Front::start(path, 0, 16)?;
    front.block()?;
    // The device notifies the front end of each frame that it has taken.
    front.flood(&Frames { bytes: &sent(&[0; 12], &frame(6)), entries: 16, chain: 1 }, stop)
}

fn linger(path: &Path, stop: &AtomicBool) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    let _unread = listener.accept()?;
    stream.set_nonblocking(true)?;
    while (&stream).write(&[0; 4_096]).is_ok() {}
    stream.set_nonblocking(false)?;
    set_socket_linger(&stream, Some(Duration::from_secs(14)))?;
    let region = Region { guest_address: 0, bytes: 4_096, user_address: 1 << 40, file_offset: 0 };
    let null = || Ok::<_, std::io::Error>(OwnedFd::from(File::open("/dev/null")?));
    let mut files = (0..9).map(|_| null()).collect::<Result<Vec<_>, _>>()?;
    files.insert(8, stream.into());
    let table = files.into_iter().map(|file| SharedRegion { region, file }).collect();
    Channel::new(UnixStream::connect(path)?)?.request(&Request::SetMemTable(table), false)?;
    wait(stop);
    Ok(())
}

fn chains(path: &Path, stop: &AtomicBool) -> Result<()> {
    let bytes = sent(&[0; 12], &frame(4_096 - 12 - 54));
    let frames = Frames { bytes: &bytes, entries: 4_096, chain: 4_096 };
    Front::start(path, 0, 4_096)?.flood(&frames, stop)
}

fn broadcasts(path: &Path, stop: &AtomicBool) -> Result<()> {
    let mut frame = frame(60_000);
    frame[..6].fill(0xff);
    // Needs a checksum; TCP over IPv4; headers of 54 bytes; segments of 1,448; checksum at 34 + 16.
    let header = [1, 1, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
    let bytes = sent(&header, &frame);
    let frames = Frames { bytes: &bytes, entries: 16, chain: 1 };
    Front::start(path, CSUM | HOST_TSO4, 16)?.flood(&frames, stop)
}

fn flood(path: &Path, stop: &AtomicBool) -> Result<()> {
    let bytes = sent(&[0; 12], &frame(6));
    let frames = Frames { bytes: &bytes, entries: 256, chain: 1 };
    Front::start(path, 0, 256)?.flood(&frames, stop)
}

fn repeat(
    path: &Path,
    stop: &AtomicBool,
    request: impl Fn(&mut Front) -> Result<()>,
) -> Result<()> {
    let mut front = Front::start(path, 0, 16)?;
    while !stop.load(Ordering::Relaxed) {
        request(&mut front)?;
    }
    Ok(())
}

/// Shares 512 MiB and leaves. The process that closes the memory last has to free it.
fn end(path: &Path) -> Result<()> {
    let bytes = 512 << 20;
    let region = Region { guest_address: 0, bytes, user_address: 1 << 40, file_offset: 0 };
    let file = OwnedFd::from(allocated(bytes)?);
    let mut channel = Channel::new(UnixStream::connect(path)?)?;
    channel.request(&Request::SetMemTable(vec![SharedRegion { region, file }]), false)?;
    // The device maps the memory meanwhile.
    thread::sleep(Duration::from_millis(20));
    Ok(())
}

/// Makes a frame from the attacker's address to one behind the wire.
fn frame(payload_bytes: usize) -> Vec<u8> {
    let mut frame = seg().seq(1).len(payload_bytes).frame_at(Instant::ZERO).bytes;
    frame[..6].copy_from_slice(&[0x52, 0x54, 0, 0, 1, 99]);
    let own = neighbour::mac(ATTACKER);
    let own = own.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok());
    frame[6..12].iter_mut().zip(own).for_each(|(byte, own)| *byte = own);
    frame
}

fn sent(header: &[u8; 12], frame: &[u8]) -> Vec<u8> {
    [&header[..], frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_has_a_name_of_its_own() {
        let mut keys: Vec<_> = ATTACKS.iter().map(|attack| attack.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), ATTACKS.len());
    }

    #[test]
    fn frames_come_from_the_attacker() {
        let frame = frame(100);
        assert_eq!((frame.len(), frame[6], frame[11]), (154, 0x52, ATTACKER as u8 + 1));
    }
}
