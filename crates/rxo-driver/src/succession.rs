//! Succession: the handover of the devices of a running process to another process, its successor or successor,
//! for example a newer version of rxo.
//!
//! 1. While the running process works, it sends a [`Handover`] with the descriptors of all devices and sockets.
//!    The successor does everything that takes time, and reports that it is prepared.
//! 2. The running process stops, and sends a second handover with the positions at which it has stopped. The
//!    successor adopts these positions, reports that it is ready, and waits for permission. Only with this
//!    permission may it use the devices.
//!
//! Until it has sent the permission, the running process can still continue by itself. It does so if the
//! successor refuses the version of the messages, ends, or sends nothing for [`SUCCESSOR_TIMEOUT`].
//!
//! This module is separate from the devices: it decides which process may use the devices, and each kind of
//! device decides which descriptors and numbers are handed over. Contract: the two processes never use a device
//! at the same time.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::descriptors::{self, Received};

/// The version of the messages. A process refuses any other.
pub(crate) const VERSION: u32 = 2;

/// The maximum time for which traffic waits for a successor.
pub const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for which a running process waits until its successor is prepared. Traffic continues meanwhile.
const PREPARATION: Duration = Duration::from_secs(30);

/// The devices and sockets of a run in a handover. The first handover contains their descriptors, the second
/// handover their positions.
#[derive(Debug, Default)]
pub struct Handover {
    /// The devices, in the order of the command line.
    pub devices: Vec<HandedDevice>,
}

/// A device or a socket that is handed over.
#[derive(Debug)]
pub struct HandedDevice {
    /// The name of the device, by which the successor identifies it.
    pub name: String,
    /// The descriptors and the state by which the successor continues with the device.
    pub handed: Handed,
}

/// The descriptors and integers by which another process continues with a device. The kind of the device defines
/// the meaning of each.
#[derive(Debug, Default)]
pub struct Handed {
    /// The open descriptors of the device or socket.
    pub files: Vec<OwnedFd>,
    /// Integers whose meaning the kind of the device defines, such as sizes and positions.
    pub numbers: Vec<u64>,
}

/// The maximum length of a message, in bytes.
const MOST_BYTES: usize = 16 << 10;
/// The length of a message's head, in bytes: the version and the number of devices.
const HEADER_BYTES: usize = 8;
/// The interval at which a process that waits for its successor calls `beat`, to show that it still works.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);
const READY: u8 = b'r';
const GO: u8 = b'g';

impl Handover {
    /// Offers the devices to a successor while they are in use. Returns once the successor has prepared
    /// everything.
    ///
    /// # Errors
    /// If the successor refuses, ends, or is not ready after half a minute.
    pub fn offer(&self, successor: &mut UnixStream) -> io::Result<()> {
        self.send(successor)?;
        await_ready(successor, PREPARATION, || {})
    }

    /// Sends the positions of all devices to the successor. Returns once the successor may use the devices. The
    /// caller must then exit without calling `shutdown` on any socket, because that would affect the successor
    /// too. Calls `beat` while it waits.
    ///
    /// # Errors
    /// If the successor refuses, ends, or sends nothing in time. The caller then continues by itself.
    pub fn leave_to(&self, successor: &mut UnixStream, beat: impl Fn()) -> io::Result<()> {
        self.send(successor)?;
        await_ready(successor, SUCCESSOR_TIMEOUT, beat)?;
        successor.write_all(&[GO])
    }

    /// Returns a copy of this handover, with its own descriptors of all devices.
    pub fn try_clone(&self) -> io::Result<Self> {
        let devices = self.devices.iter().map(|HandedDevice { name, handed }| {
            let files = handed.files.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
            let handed = Handed { files, numbers: handed.numbers.clone() };
            Ok(HandedDevice { name: name.clone(), handed })
        });
        Ok(Self { devices: devices.collect::<io::Result<_>>()? })
    }

    /// Receives a handover.
    ///
    /// # Errors
    /// If nothing arrives for `timeout`, or the message is of another version.
    pub fn receive(from: &UnixStream, timeout: Duration) -> io::Result<Self> {
        let mut bytes = vec![0; MOST_BYTES];
        from.set_read_timeout(Some(timeout))?;
        let received = descriptors::receive(from.as_fd(), &mut bytes, 0)?;
        let Received { count, files, is_cut } = received;
        if count == 0 {
            return Err(io::Error::other("the running rxo hands nothing over"));
        }
        let wrong = || io::Error::other("the running rxo hands over what this version cannot read");
        if is_cut {
            return Err(wrong());
        }
        Self::read(&bytes[..count], files).ok_or_else(wrong)
    }

    /// Removes from the handover, and returns, the descriptors and integers of the device `name`; `None` if the
    /// handover does not contain it.
    pub fn take(&mut self, name: &str) -> Option<Handed> {
        let at = self.devices.iter().position(|device| device.name == name)?;
        Some(self.devices.swap_remove(at).handed)
    }

    fn send(&self, successor: &UnixStream) -> io::Result<()> {
        let files = self.devices.iter().flat_map(|device| &device.handed.files);
        let files: Vec<BorrowedFd<'_>> = files.map(AsFd::as_fd).collect();
        descriptors::send(successor.as_fd(), &self.to_bytes()?, &files)
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = VERSION.to_ne_bytes().to_vec();
        bytes.extend((self.devices.len() as u32).to_ne_bytes());
        for HandedDevice { name, handed: Handed { files, numbers } } in &self.devices {
            let lengths = [files.len(), numbers.len(), name.len()];
            lengths.iter().for_each(|length| bytes.extend((*length as u32).to_ne_bytes()));
            numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
            bytes.extend(name.as_bytes());
        }
        let is_short = bytes.len() <= MOST_BYTES;
        is_short.then_some(bytes).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Parses the message; `None` if it is of another version or incomplete.
    fn read(bytes: &[u8], files: Vec<OwnedFd>) -> Option<Self> {
        let (header, mut rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| Some(u32::from_ne_bytes(*header[at..].first_chunk()?));
        if word(0)? != VERSION {
            return None;
        }
        let (mut devices, mut files) = (Vec::new(), files.into_iter());
        for _ in 0..word(4)? {
            let [files_count, numbers_count, name_bytes] =
                [take_word(&mut rest)?, take_word(&mut rest)?, take_word(&mut rest)?];
            let numbers = (0..numbers_count).map(|_| take_number(&mut rest));
            let numbers = numbers.collect::<Option<_>>()?;
            let (name, after) = rest.split_at_checked(name_bytes as usize)?;
            rest = after;
            let own: Vec<_> = files.by_ref().take(files_count as usize).collect();
            if own.len() < files_count as usize {
                return None;
            }
            let name = String::from_utf8(name.to_vec()).ok()?;
            devices.push(HandedDevice { name, handed: Handed { files: own, numbers } });
        }
        (rest.is_empty() && files.next().is_none()).then_some(Self { devices })
    }
}

impl Handed {
    /// Creates the handover state of a device that is described by its descriptors alone; `numbers` is empty.
    #[must_use]
    pub const fn of_files(files: Vec<OwnedFd>) -> Self {
        Self { files, numbers: Vec::new() }
    }
}

/// Reports to the running process that this successor is prepared. The running process then stops, and sends
/// the positions of its devices.
///
/// # Errors
/// If the running process has ended.
pub fn prepared(from: &mut UnixStream) -> io::Result<()> {
    from.write_all(&[READY])
}

/// Reports to the running process that this successor is ready to use all devices, and waits for the
/// permission.
///
/// # Errors
/// If the running process continues by itself. This process must then use none of the devices.
pub fn claim(from: &mut UnixStream) -> io::Result<()> {
    from.write_all(&[READY])?;
    from.set_read_timeout(Some(2 * SUCCESSOR_TIMEOUT))?;
    let mut word = [0];
    from.read_exact(&mut word)?;
    if word == [GO] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Waits until the successor reports that it is ready, at most for `timeout`. Calls `beat` at intervals.
fn await_ready(successor: &mut UnixStream, timeout: Duration, beat: impl Fn()) -> io::Result<()> {
    successor.set_read_timeout(Some(HEARTBEAT_INTERVAL))?;
    let (begun, mut answer) = (Instant::now(), [0]);
    loop {
        beat();
        match successor.read(&mut answer) {
            Ok(1) if answer == [READY] => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(error) if is_early(&error) && begun.elapsed() < timeout => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_ne_bytes(*number))
}

fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    fn handover() -> Handover {
        let file = || std::fs::File::open("/dev/null").unwrap().into();
        let handed_device = |name: &str, count: usize, numbers: &[u64]| HandedDevice {
            name: name.to_owned(),
            handed: Handed {
                files: (0..count).map(|_| file()).collect(),
                numbers: numbers.to_vec(),
            },
        };
        let devices = vec![
            handed_device("vhost:/run/a", 3, &[]),
            handed_device("control", 0, &[]),
            handed_device("packet:eth1", 1, &[8_192, u64::MAX]),
        ];
        Handover { devices }
    }

    fn shape(handover: &Handover) -> Vec<(String, usize, Vec<u64>)> {
        let of =
            |it: &HandedDevice| (it.name.clone(), it.handed.files.len(), it.handed.numbers.clone());
        handover.devices.iter().map(of).collect()
    }

    #[test]
    fn an_heir_that_is_ready_gets_the_word() {
        let (mut old, mut new) = UnixStream::pair().unwrap();
        let left = thread::spawn(move || {
            handover().offer(&mut old)?;
            handover().leave_to(&mut old, || {})
        });
        let mut got = Handover::receive(&new, SUCCESSOR_TIMEOUT).unwrap();
        assert_eq!(shape(&got), shape(&handover()));
        assert_eq!(got.take("packet:eth1").unwrap().numbers, [8_192, u64::MAX]);
        assert!(got.take("packet:eth1").is_none() && got.take("packet:eth2").is_none());
        prepared(&mut new).unwrap();
        let got = Handover::receive(&new, SUCCESSOR_TIMEOUT).unwrap();
        assert_eq!(shape(&got), shape(&handover()));
        claim(&mut new).unwrap();
        left.join().unwrap().unwrap();
    }

    #[test]
    fn without_an_answer_the_old_process_goes_on() {
        let (mut old, new) = UnixStream::pair().unwrap();
        let left = thread::spawn(move || handover().leave_to(&mut old, || {}));
        drop(Handover::receive(&new, SUCCESSOR_TIMEOUT).unwrap());
        drop(new);
        left.join().unwrap().unwrap_err();
        // The word may not come after the old process has given up, which works while it waits.
        let (mut old, mut new) = UnixStream::pair().unwrap();
        let turns = AtomicU32::new(0);
        handover().leave_to(&mut old, || _ = turns.fetch_add(1, Ordering::Relaxed)).unwrap_err();
        assert!(turns.into_inner() > 2, "a keeper must not take it for one that hangs");
        Handover::receive(&new, SUCCESSOR_TIMEOUT).unwrap();
        drop(old);
        claim(&mut new).unwrap_err();
    }

    #[test]
    fn another_version_and_a_message_that_lies_are_refused() {
        let files = || (0..4).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect();
        let bytes = handover().to_bytes().unwrap();
        assert!(Handover::read(&bytes, files()).is_some());
        let mut other = bytes.clone();
        other[0] = 1;
        assert!(Handover::read(&other, files()).is_none());
        assert!(Handover::read(&bytes, Vec::new()).is_none(), "fewer descriptors");
        for length in 0..bytes.len() {
            assert!(Handover::read(&bytes[..length], files()).is_none(), "{length}");
        }
        assert!(Handover::read(&[&bytes[..], &[0]].concat(), files()).is_none());
    }
}
