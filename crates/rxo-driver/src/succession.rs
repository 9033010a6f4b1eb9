//! Succession: a process continues with the devices of another process, for example of an older version of
//! rxo.
//!
//! The [`Estate`] is one message: a version, the names of the devices, and their descriptors. The successor
//! (heir) prepares to use the devices, reports that it is ready, and waits for permission. Until the other
//! process has given permission, it may continue by itself: it does so if the successor refuses the version,
//! ends, or sends nothing for [`PATIENCE`].
//!
//! Separate from the devices, because this protocol decides which process may use them, while each device
//! decides what is handed over. Contract: the two processes never use a device at the same time.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rxo_frame::Instant;

use crate::descriptors::{self, Received};

/// The version of the message. A process refuses any other.
pub(crate) const VERSION: u32 = 1;

/// The maximum time for which traffic waits for a successor.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The devices and sockets of a run, as its successor receives them.
#[derive(Debug)]
pub struct Estate {
    /// The instant until which the other process received frames from the nic.
    pub read_until: Instant,
    /// The devices, in the order of the command line.
    pub devices: Vec<Legacy>,
}

/// A device or a socket that is handed over.
#[derive(Debug)]
pub struct Legacy {
    /// The name of the device, by which the successor identifies it.
    pub name: String,
    /// The descriptors of the device; see [`DeviceHandle::hand_over`](crate::DeviceHandle::hand_over).
    pub files: Vec<OwnedFd>,
}

/// The maximum length of the message, in bytes.
const MOST_BYTES: usize = 16 << 10;
/// The length of version, instant, and number of devices, in bytes.
const HEADER_BYTES: usize = 16;
const READY: u8 = b'r';
const GO: u8 = b'g';

impl Estate {
    /// Hands the devices over to the process at the other end of `heir`. Returns once that process may use
    /// them. The caller must then end without shutting down any socket, because a shutdown affects both
    /// processes.
    ///
    /// # Errors
    /// If the other process refuses, ends, or sends nothing in time. The caller then continues by itself.
    pub fn leave_to(&self, heir: &mut UnixStream) -> io::Result<()> {
        let files: Vec<BorrowedFd<'_>> =
            self.devices.iter().flat_map(|device| &device.files).map(AsFd::as_fd).collect();
        descriptors::send(heir.as_fd(), &self.to_bytes()?, &files)?;
        heir.set_read_timeout(Some(PATIENCE))?;
        let mut answer = [0];
        heir.read_exact(&mut answer)?;
        if answer != [READY] {
            return Err(io::ErrorKind::InvalidData.into());
        }
        heir.write_all(&[GO])
    }

    /// Receives the message; [`Estate::claim`] must follow.
    ///
    /// # Errors
    /// If nothing arrives for `patience`, or the message is of another version.
    pub fn receive(from: &UnixStream, patience: Duration) -> io::Result<Self> {
        let mut bytes = vec![0; MOST_BYTES];
        from.set_read_timeout(Some(patience))?;
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

    /// Reports that this process can use all devices, and waits for the permission to use them.
    ///
    /// # Errors
    /// If the other process continues by itself. This process must then use none of the devices.
    pub fn claim(&self, from: &mut UnixStream) -> io::Result<()> {
        from.write_all(&[READY])?;
        from.set_read_timeout(Some(2 * PATIENCE))?;
        let mut word = [0];
        from.read_exact(&mut word)?;
        if word == [GO] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = VERSION.to_ne_bytes().to_vec();
        bytes.extend((self.devices.len() as u32).to_ne_bytes());
        bytes.extend(self.read_until.as_nanos().to_ne_bytes());
        for Legacy { name, files } in &self.devices {
            bytes.extend((files.len() as u32).to_ne_bytes());
            bytes.extend((name.len() as u32).to_ne_bytes());
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
        let read_until = Instant::from_nanos(u64::from_ne_bytes(*header[8..].first_chunk()?));
        let (mut devices, mut files) = (Vec::new(), files.into_iter());
        for _ in 0..word(4)? {
            let count = take_word(&mut rest)?;
            let length = take_word(&mut rest)? as usize;
            let (name, after) = rest.split_at_checked(length)?;
            rest = after;
            let own: Vec<_> = files.by_ref().take(count as usize).collect();
            if own.len() < count as usize {
                return None;
            }
            devices.push(Legacy { name: String::from_utf8(name.to_vec()).ok()?, files: own });
        }
        (rest.is_empty() && files.next().is_none()).then_some(Self { read_until, devices })
    }
}

fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn estate() -> Estate {
        let file = || std::fs::File::open("/dev/null").unwrap().into();
        let legacy = |name: &str, count: usize| Legacy {
            name: name.to_owned(),
            files: (0..count).map(|_| file()).collect(),
        };
        let devices = vec![legacy("vhost:/run/a", 3), legacy("control", 0), legacy("b", 1)];
        Estate { read_until: Instant::from_nanos(77), devices }
    }

    fn shape(estate: &Estate) -> Vec<(String, usize)> {
        estate.devices.iter().map(|it| (it.name.clone(), it.files.len())).collect()
    }

    #[test]
    fn an_heir_that_is_ready_gets_the_word() {
        let (mut old, mut new) = UnixStream::pair().unwrap();
        let left = thread::spawn(move || estate().leave_to(&mut old));
        let got = Estate::receive(&new, PATIENCE).unwrap();
        assert_eq!((got.read_until.as_nanos(), shape(&got)), (77, shape(&estate())));
        got.claim(&mut new).unwrap();
        left.join().unwrap().unwrap();
    }

    #[test]
    fn without_an_answer_the_old_process_goes_on() {
        let (mut old, new) = UnixStream::pair().unwrap();
        let left = thread::spawn(move || estate().leave_to(&mut old));
        drop(Estate::receive(&new, PATIENCE).unwrap());
        drop(new);
        left.join().unwrap().unwrap_err();
        // The word may not come after the old process has given up.
        let (mut old, mut new) = UnixStream::pair().unwrap();
        estate().leave_to(&mut old).unwrap_err();
        let got = Estate::receive(&new, PATIENCE).unwrap();
        drop(old);
        got.claim(&mut new).unwrap_err();
    }

    #[test]
    fn another_version_and_a_message_that_lies_are_refused() {
        let files = || (0..4).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect();
        let bytes = estate().to_bytes().unwrap();
        assert!(Estate::read(&bytes, files()).is_some());
        let mut other = bytes.clone();
        other[0] = 2;
        assert!(Estate::read(&other, files()).is_none());
        assert!(Estate::read(&bytes, Vec::new()).is_none(), "fewer descriptors");
        for length in 0..bytes.len() {
            assert!(Estate::read(&bytes[..length], files()).is_none(), "{length}");
        }
        assert!(Estate::read(&[&bytes[..], &[0]].concat(), files()).is_none());
    }
}
