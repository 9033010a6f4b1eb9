//! Channel: a unix socket that carries messages and descriptors.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::foreign::{self, Discards};
use super::{Assembler, InflightShape, MOST_DESCRIPTORS, Message, Reply, Request, Wrong};
use crate::descriptors::{self, Received};
use crate::sys;

/// One end of a connection. No call blocks.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    assembler: Assembler,
    discards: Discards,
}

/// The maximum number of bytes read by one system call.
const CHUNK_BYTES: usize = 512;

impl Channel {
    /// Creates a channel over a connected socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        Self::discarding_to(socket, Discards::default())
    }

    /// Creates a channel that counts refused descriptors in `discards`.
    pub(crate) fn discarding_to(socket: UnixStream, discards: Discards) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, assembler: Assembler::default(), discards })
    }

    /// Receives the next message; `None` if it has not arrived completely.
    ///
    /// # Errors
    /// `UnexpectedEof` if the other side has closed, `InvalidData` if the message is invalid.
    pub fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            let mut bytes = [0; CHUNK_BYTES];
            let wanted = self.assembler.wanted().map_err(invalid)?.min(CHUNK_BYTES);
            let target = &mut bytes[..wanted];
            let (count, descriptors) =
                match receive_with_descriptors(self.socket.as_fd(), target, &self.discards) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    other => other?,
                };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let message = self.assembler.push(&bytes[..count], descriptors).map_err(invalid)?;
            if message.is_some() {
                return Ok(message);
            }
        }
    }

    /// Returns a second descriptor of the socket, with which another process can take over the connection.
    ///
    /// # Errors
    /// `WouldBlock` if a message has arrived in part; other errors if the system refuses.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        if !self.assembler.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.socket.as_fd().try_clone_to_owned()
    }

    /// Sends a reply.
    ///
    /// # Errors
    /// If the other side has closed, or does not read its replies.
    pub fn reply(&mut self, reply: Reply) -> io::Result<()> {
        descriptors::send(self.socket.as_fd(), &reply.to_bytes(), &[])
    }

    /// Sends the reply to [`Request::GetInflight`]: a file of `bytes` bytes for a record of this shape.
    ///
    /// # Errors
    /// Returns the errors of [`Channel::reply`].
    pub(crate) fn reply_inflight(
        &mut self,
        shape: InflightShape,
        bytes: u64,
        file: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let message = Reply::inflight(shape, bytes);
        descriptors::send(self.socket.as_fd(), &message, &[file])
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the other side has closed, or does not read requests.
    pub fn request<F: AsFd>(&mut self, request: &Request<F>, needs_reply: bool) -> io::Result<()> {
        let bytes = request.to_bytes(needs_reply);
        descriptors::send(self.socket.as_fd(), &bytes, &request.files())
    }
}

/// Receives all data from the socket before it is closed. This thread would otherwise close the descriptors that
/// are left in the socket, which may block.
impl Drop for Channel {
    fn drop(&mut self) {
        // After the shutdown no more data arrives, so the loop ends.
        _ = self.socket.shutdown(Shutdown::Both);
        let mut bytes = [0; CHUNK_BYTES];
        loop {
            match receive_with_descriptors(self.socket.as_fd(), &mut bytes, &self.discards) {
                Ok((0, _)) => return,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::InvalidData => {}
                    _ => return,
                },
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn invalid(wrong: Wrong) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, wrong)
}

/// Connects to the socket at `path`. Does not block.
///
/// # Errors
/// If no process listens there, or the listener's queue is full.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = sys::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    sys::connect_unix(socket.as_fd(), path)?;
    Ok(socket.into())
}

fn receive_with_descriptors(
    socket: BorrowedFd<'_>,
    target: &mut [u8],
    discards: &Discards,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let received = descriptors::receive(socket, target, libc::MSG_DONTWAIT)?;
    let Received { count, files, is_cut } = received;
    if is_cut || files.len() > MOST_DESCRIPTORS {
        discards.add(files);
        return Err(invalid(Wrong::Descriptors));
    }
    if !files.iter().all(|file| foreign::is_harmless(file.as_fd())) {
        discards.add(files);
        return Err(invalid(Wrong::Foreign));
    }
    Ok((count, files))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::vhost_user::{Region, SharedRegion};

    fn pair() -> (Channel, Channel) {
        let (left, right) = UnixStream::pair().unwrap();
        (Channel::new(left).unwrap(), Channel::new(right).unwrap())
    }

    fn file() -> OwnedFd {
        crate::virtio_net::mapping::memory_file(1).unwrap()
    }

    #[test]
    fn a_descriptor_that_may_block_ends_the_connection() {
        let (front, mut back) = pair();
        let null = std::fs::File::open("/dev/null").unwrap();
        let bytes = Request::<OwnedFd>::SetFeatures(0).to_bytes(false);
        descriptors::send(front.as_fd(), &bytes, &[file().as_fd(), null.as_fd()]).unwrap();
        let error = back.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), Wrong::Foreign.to_string());
    }

    #[test]
    fn requests_and_their_descriptors_come_one_by_one() {
        let (mut front, mut back) = pair();
        let region =
            |n: u64| Region { guest_address: n, bytes: 1, user_address: n, file_offset: 0 };
        let shared = |n| SharedRegion { region: region(n), file: file() };
        front.request(&Request::SetMemTable((0..8).map(shared).collect()), false).unwrap();
        front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
        let table = back.receive().unwrap().unwrap();
        assert_eq!(table.descriptors.len(), 8);
        assert!(
            matches!(Request::read(table).unwrap(), Request::SetMemTable(table) if table.len() == 8)
        );
        let features = back.receive().unwrap().unwrap();
        assert!(features.descriptors.is_empty());
        assert!(back.receive().unwrap().is_none());
        back.reply(Reply::number(1, 7)).unwrap();
        let reply = front.receive().unwrap().unwrap();
        assert_eq!(Reply::read(1, reply.header, &reply.payload).unwrap().value(), 7);
    }

    #[test]
    fn a_closed_end_and_an_impossible_message_are_told_apart() {
        let (mut front, back) = pair();
        drop(back);
        assert_eq!(front.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let (left, mut right) = UnixStream::pair().unwrap();
        right.write_all(&[0; 12]).unwrap();
        let error = Channel::new(left).unwrap().receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "a message has version 0 instead of 1");
    }

    /// Whatever the kernel sends with a message is received, and closed on a thread of its own.
    #[test]
    fn all_descriptors_that_the_kernel_sends_are_received() {
        let (left, right) = UnixStream::pair().unwrap();
        let discards = Discards::default();
        let mut back = Channel::discarding_to(right, discards.clone()).unwrap();
        let files: Vec<_> = (0..253).map(|_| file()).collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let bytes = Request::<OwnedFd>::SetFeatures(0).to_bytes(false);
        descriptors::send(left.as_fd(), &bytes, &files).unwrap();
        let error = back.receive().unwrap_err();
        assert_eq!(error.to_string(), Wrong::Descriptors.to_string());
        assert_eq!(discards.seen(), 253);
    }

    #[test]
    fn more_descriptors_than_a_message_may_have_end_the_connection() {
        let (mut front, mut back) = pair();
        let files: Vec<_> = (0..MOST_DESCRIPTORS).map(|_| file()).collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        for _ in 0..2 {
            let bytes = Request::<OwnedFd>::SetFeatures(0).to_bytes(false);
            descriptors::send(front.as_fd(), &bytes[..6], &files).unwrap();
        }
        assert_eq!(back.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
        front.request(&Request::<OwnedFd>::SetOwner, false).unwrap();
    }
}
