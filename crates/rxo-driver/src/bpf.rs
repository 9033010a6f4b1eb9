//! BPF: loads programs into the kernel, makes the map of AF_XDP sockets, and attaches a program to an
//! interface.
//!
//! This module is separate because TAPs and other interfaces load their filters in the same way. Contract:
//! every program, map and attachment is a descriptor. The kernel removes the object when its last descriptor
//! is closed, or when the process that holds the descriptor ends.
#![allow(unsafe_code, reason = "the system call bpf takes structures of pointers")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys::check;

/// One instruction: `struct bpf_insn` of linux/bpf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// The destination register in the lower half, the source register in the upper one.
    registers: u8,
    pub(crate) offset: i16,
    pub(crate) value: i32,
}

impl Instruction {
    pub(crate) const fn new(code: u32, to: u8, from: u8, value: i32) -> Self {
        Self { code: code as u8, registers: from << 4 | to, offset: 0, value }
    }

    /// Returns the instruction with its offset field set to `offset`: a number of instructions for a jump, of
    /// bytes for a memory access.
    pub(crate) const fn at(self, offset: i16) -> Self {
        Self { offset, ..self }
    }
}

/// The kind of a BPF program, which decides which operations the program may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A program that chooses the queue of a frame (`BPF_PROG_TYPE_SOCKET_FILTER`).
    SocketFilter,
    /// A program that redirects frames of an interface (`BPF_PROG_TYPE_XDP`).
    Xdp {
        /// `true` if frames may be in several pieces (`BPF_F_XDP_HAS_FRAGS`, Linux 5.18).
        takes_pieces: bool,
        /// The index of the only interface to which the program may be attached, so that it may query the
        /// driver's metadata of a frame (`BPF_F_XDP_DEV_BOUND_ONLY`, Linux 6.3); `None` for any interface.
        bound_to: Option<u32>,
    },
}

/// The attributes of `BPF_PROG_LOAD`, up to the last one that rxo uses.
#[repr(C)]
struct Program {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    /// The level, size and address of a log; all zero, because no log is requested.
    log: [u64; 2],
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

/// The attributes of `BPF_MAP_CREATE`, up to the last one that rxo uses.
#[repr(C)]
struct Map {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

/// The attributes of `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct Entry {
    map: u64,
    key: u64,
    value: u64,
    flags: u64,
}

/// The attributes of `BPF_LINK_CREATE`, up to the last one that rxo uses.
#[repr(C)]
struct Link {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Loads `program` into the kernel. The program stays loaded while the returned descriptor is open, or while a
/// device uses it.
///
/// # Errors
/// If the system refuses, most often because this process lacks `CAP_BPF`.
pub(crate) fn load(program: &[Instruction], kind: Kind) -> io::Result<OwnedFd> {
    let (number, attach, flags, interface) = match kind {
        Kind::SocketFilter => (1, 0, 0, 0),
        Kind::Xdp { takes_pieces, bound_to } => {
            let pieces = if takes_pieces { HAS_FRAGS } else { 0 };
            let bound = bound_to.map_or(0, |_| DEVICE_BOUND);
            (6, ATTACH_XDP, pieces | bound, bound_to.unwrap_or(0))
        }
    };
    let mut attributes = Program {
        kind: number,
        instructions: program.len() as u32,
        program: program.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log: [0; 2],
        kernel: 0,
        flags,
        name: [0; 16],
        interface,
        attach,
    };
    // The kernel stops checking a program when a signal or other work for the thread is pending.
    let mut attempts = MOST_ATTEMPTS;
    loop {
        // SAFETY: the kernel reads the instructions that the attributes count, and a text that ends with a zero byte.
        match unsafe { make(PROG_LOAD, &mut attributes) } {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && attempts > 0 => {
                attempts -= 1
            }
            loaded => return loaded,
        }
    }
}

/// Maximum number of further attempts to load a program that the kernel has not finished checking. libbpf makes five.
const MOST_ATTEMPTS: u32 = 20;

/// Creates a map from queue numbers below `queues` to AF_XDP sockets.
pub(crate) fn map_of_sockets(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = Map { kind: XSKMAP, key_bytes: 4, value_bytes: 4, entries: queues };
    // SAFETY: the attributes have no pointers.
    unsafe { make(MAP_CREATE, &mut attributes) }
}

/// Adds `socket` to `map`, a map of AF_XDP sockets, as the socket for the frames of `queue`.
pub(crate) fn put_socket(
    map: BorrowedFd<'_>,
    queue: u32,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let mut attributes = Entry {
        map: map.as_raw_fd() as u64,
        key: (&raw const queue) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    // SAFETY: key and value are live words of four bytes, the sizes that the map was created with.
    unsafe { call(MAP_UPDATE, &mut attributes) }.map(drop)
}

/// Attaches a program to an interface, in its driver. The interface runs the program until the returned
/// descriptor is closed.
///
/// # Errors
/// `EBUSY` or `EEXIST` if another program is attached already, `EOPNOTSUPP` if the interface's driver cannot
/// run programs.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().unsigned_abs();
    let mut attributes = Link { program, interface, attach: ATTACH_XDP, flags: IN_DRIVER };
    // SAFETY: the attributes have no pointers.
    unsafe { make(LINK_CREATE, &mut attributes) }
}

/// Makes a `bpf` system call that returns a new descriptor.
///
/// # Safety
/// Pointers in `attributes` must be valid, as [`call`] requires.
unsafe fn make<T>(command: c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller guarantees what `call` requires.
    let file = unsafe { call(command, attributes)? };
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Makes a `bpf` system call.
///
/// # Safety
/// `attributes` must be the attributes of `command`, and all memory to which they point must be live.
unsafe fn call<T>(command: c_int, attributes: &mut T) -> io::Result<c_int> {
    let (attributes, size) = (std::ptr::from_mut(attributes), size_of::<T>());
    // SAFETY: the kernel reads and writes at most `size` bytes of live attributes; the caller guarantees the
    // rest.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) } as c_int)
}

// The commands of `bpf`, from linux/bpf.h.
const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const XSKMAP: u32 = 17;
const ATTACH_XDP: u32 = 37;
/// The flag that attaches a program in the driver: `XDP_FLAGS_DRV_MODE` of linux/if_link.h.
const IN_DRIVER: u32 = 1 << 2;
const HAS_FRAGS: u32 = 1 << 5;
const DEVICE_BOUND: u32 = 1 << 6;
const LICENSE: &[u8] = b"Dual MIT/GPL\0";
