//! A unix socket that carries messages and descriptors.
#![allow(
    unsafe_code,
    reason = "descriptors travel in control messages, which are made of pointers"
)]

use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::foreign::{self, Discards};
use super::{Assembler, MOST_DESCRIPTORS, Message, Reply, Request, Wrong};
use crate::sys;

/// One end of a connection. It never waits.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    assembler: Assembler,
    discards: Discards,
}

/// Bytes read at once.
const CHUNK_BYTES: usize = 512;

/// Room for the control message of [`MOST_DESCRIPTORS`] descriptors, in 8-byte words. The kernel cuts
/// off what does not fit, and says so.
const CONTROL_WORDS: usize = 2 + MOST_DESCRIPTORS.div_ceil(2);

impl Channel {
    /// A channel over a connected socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        Self::discarding_to(socket, Discards::default())
    }

    /// A channel that counts the descriptors that it refuses.
    pub(crate) fn discarding_to(socket: UnixStream, discards: Discards) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, assembler: Assembler::default(), discards })
    }

    /// The next message; `None` if it has not come as a whole.
    ///
    /// # Errors
    /// `UnexpectedEof` if the other side has closed, `InvalidData` if the message is impossible.
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

    /// Sends a reply.
    ///
    /// # Errors
    /// If the other side has closed, or does not read its replies.
    pub fn reply(&mut self, reply: Reply) -> io::Result<()> {
        send_with_descriptors(self.socket.as_fd(), &reply.to_bytes(), &[])
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the other side has closed, or does not read requests.
    pub fn request<F: AsFd>(&mut self, request: &Request<F>, needs_reply: bool) -> io::Result<()> {
        let bytes = request.to_bytes(needs_reply);
        send_with_descriptors(self.socket.as_fd(), &bytes, &request.files())
    }
}

/// Empties the socket first. Descriptors that nobody has taken from it are closed with it, by this thread, and
/// closing one may block.
impl Drop for Channel {
    fn drop(&mut self) {
        // Nothing comes afterwards, so this ends.
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

/// Connects to the socket at `path`, and never waits.
///
/// # Errors
/// If nobody listens there, or so many have connected already that this would wait.
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
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: target.as_mut_ptr().cast(), iov_len: target.len() };
    let mut message = message_of(&mut piece, &mut control);
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the message points to a live target and to live control memory, each of its length.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in `message` and `control`.
    let descriptors = unsafe { take_descriptors(&message) };
    if !descriptors.iter().all(|file| foreign::is_harmless(file.as_fd())) {
        discards.add(descriptors);
        return Err(invalid(Wrong::Foreign));
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(invalid(Wrong::Descriptors));
    }
    Ok((count, descriptors))
}

/// The descriptors of a received message.
///
/// # Safety
/// `recvmsg` must have filled in `message`, once, and its control memory must be live.
unsafe fn take_descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut taken = Vec::new();
    // SAFETY: the caller promises that the kernel wrote the headers, and that their memory is live.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` return null or a whole header in that memory.
    while let Some(one) = unsafe { header.as_ref() } {
        if (one.cmsg_level, one.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: takes a number only.
            let before = unsafe { libc::CMSG_LEN(0) } as usize;
            let count = one.cmsg_len.saturating_sub(before) / size_of::<RawFd>();
            // SAFETY: the data of the header begins there.
            let data = unsafe { libc::CMSG_DATA(header) };
            for n in 0..count {
                // SAFETY: `cmsg_len` says that the data has `count` descriptors, aligned or not.
                let fd = unsafe { data.cast::<RawFd>().add(n).read_unaligned() };
                // SAFETY: the kernel made the descriptor for this process, and nobody else has it.
                taken.push(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        }
        // SAFETY: `header` is one of the headers of `message`.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    taken
}

fn send_with_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message_of(&mut piece, &mut control);
    if files.is_empty() {
        (message.msg_control, message.msg_controllen) = (std::ptr::null_mut(), 0);
    } else if files.len() > MOST_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    } else {
        let file_bytes = size_of_val(files) as u32;
        // SAFETY: takes a number only.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(file_bytes) } as _;
        // SAFETY: the control memory is live and has room for a header and the descriptors.
        unsafe { put_descriptors(&message, files) };
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the message points to live bytes and control memory, each of its length.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        // A message is far smaller than the socket's buffer, so the other side has stopped reading.
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Writes the control message.
///
/// # Safety
/// The control memory of `message` must be live, writable, aligned for a header, and large enough.
unsafe fn put_descriptors(message: &libc::msghdr, files: &[BorrowedFd<'_>]) {
    let bytes = size_of_val(files) as u32;
    // SAFETY: the caller promises room for one header, so this is not null.
    let header = unsafe { &mut *libc::CMSG_FIRSTHDR(message) };
    (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
    // SAFETY: takes a number only.
    header.cmsg_len = unsafe { libc::CMSG_LEN(bytes) } as _;
    // SAFETY: the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    for (n, file) in files.iter().enumerate() {
        // SAFETY: the caller promises room for all descriptors.
        unsafe { data.cast::<RawFd>().add(n).write_unaligned(file.as_raw_fd()) };
    }
}

fn message_of(piece: &mut libc::iovec, control: &mut [u64; CONTROL_WORDS]) -> libc::msghdr {
    // SAFETY: a structure of integers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (message.msg_iov, message.msg_iovlen) = (piece, 1);
    (message.msg_control, message.msg_controllen) =
        (control.as_mut_ptr().cast(), size_of_val(control) as _);
    message
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
        send_with_descriptors(front.as_fd(), &bytes, &[file().as_fd(), null.as_fd()]).unwrap();
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

    #[test]
    fn more_descriptors_than_a_message_may_have_end_the_connection() {
        let (mut front, mut back) = pair();
        let files: Vec<_> = (0..MOST_DESCRIPTORS).map(|_| file()).collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        for _ in 0..2 {
            let bytes = Request::<OwnedFd>::SetFeatures(0).to_bytes(false);
            send_with_descriptors(front.as_fd(), &bytes[..6], &files).unwrap();
        }
        assert_eq!(back.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
        front.request(&Request::<OwnedFd>::SetOwner, false).unwrap();
    }
}
