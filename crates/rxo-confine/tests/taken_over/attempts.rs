//! The attempts of a compromised process. None has lasting effects: signals have number 0, which does
//! nothing, and mounts and traces name objects that do not exist.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::TcpStream;
use std::thread;

use libc::{self as c};

use crate::raw::{at, call};
use crate::scene::Scene;

/// An action that an attacker would try in a compromised process.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    /// The privilege with which the attempt succeeds without a sandbox.
    pub(crate) needs: Needs,
    pub(crate) run: fn(&Scene) -> io::Result<()>,
}

/// The privilege with which an attempt succeeds without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nobody,
    Root,
    /// The attempt is not made without a sandbox, because it would have lasting effects, or because kernels
    /// differ.
    Never,
}

impl Needs {
    pub(crate) fn are_met(self) -> bool {
        match self {
            Self::Nobody => true,
            Self::Root => rustix::process::geteuid().is_root(),
            Self::Never => false,
        }
    }
}

const fn attempt(name: &'static str, needs: Needs, run: fn(&Scene) -> io::Result<()>) -> Attempt {
    Attempt { name, needs, run }
}

use Needs::{Never, Nobody, Root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt("read in the folder", Nobody, |s| fs::read(s.folder().join("inside")).map(drop)),
    attempt("write in the folder", Nobody, |s| fs::write(s.folder().join("new"), "x")),
    attempt("read outside", Nobody, |s| fs::read(s.outside()).map(drop)),
    attempt("write outside", Nobody, |s| fs::write(s.outside(), "x")),
    attempt("remove outside", Never, |s| fs::remove_file(s.outside())),
    attempt("read in /proc", Nobody, |_| fs::read("/proc/version").map(drop)),
    attempt("read /etc/shadow", Root, |_| File::open("/etc/shadow").map(drop)),
    attempt("write a setting of the network", Root, |_| {
        OpenOptions::new().write(true).open("/proc/sys/net/ipv4/ip_forward").map(drop)
    }),
    attempt("write a setting of the kernel", Root, |_| {
        OpenOptions::new().write(true).open("/proc/sys/kernel/printk").map(drop)
    }),
    attempt("read the memory of a sibling by its file", Root, |s| {
        File::open(format!("/proc/{}/mem", s.sibling())).map(drop)
    }),
    attempt("read the memory of a sibling by a call", Root, |s| {
        let byte = [0_u8; 1];
        let local = [at(&byte), 1];
        let arguments = [s.sibling() as usize, at(&local), 1, at(&local), 0, 0];
        // Nothing is mapped at this address.
        other_than_refusal(call(c::SYS_process_vm_readv, &arguments))
    }),
    attempt("trace its parent", Never, |_| {
        let parent = rustix::process::getppid().map_or(1, |parent| parent.as_raw_nonzero().get());
        call(c::SYS_ptrace, &[c::PTRACE_SEIZE as usize, parent as usize]).map(drop)
    }),
    attempt("kill a sibling", Nobody, |s| call(c::SYS_kill, &[s.sibling() as usize]).map(drop)),
    attempt("kill everybody", Nobody, |_| call(c::SYS_kill, &[usize::MAX]).map(drop)),
    attempt("a descriptor of a sibling", Nobody, |s| {
        closed(call(c::SYS_pidfd_open, &[s.sibling() as usize]))
    }),
    attempt("start a program in its place", Never, |_| {
        let arguments = [at(c"/bin/true".to_bytes_with_nul()), 0, 0];
        call(c::SYS_execve, &arguments).map(drop)
    }),
    attempt("start a process", Never, |_| call(c::SYS_clone, &[c::SIGCHLD as usize]).map(drop)),
    attempt("a connection", Nobody, |_| {
        other_than_refusal(TcpStream::connect("127.0.0.1:1").map(|_| 0))
    }),
    attempt("a TCP socket", Nobody, |_| closed(socket(c::AF_INET, c::SOCK_STREAM))),
    attempt("a unix socket", Nobody, |_| closed(socket(c::AF_UNIX, c::SOCK_STREAM))),
    attempt("a packet socket", Root, |_| closed(socket(c::AF_PACKET, c::SOCK_RAW))),
    attempt("an AF_XDP socket", Root, |_| {
        let made = call(c::SYS_socket, &[c::AF_XDP as usize, c::SOCK_RAW as usize, 0]);
        other_than_refusal(made)
    }),
    attempt("a raw socket", Root, |_| {
        closed(call(c::SYS_socket, &[c::AF_INET as usize, c::SOCK_RAW as usize, ICMP]))
    }),
    attempt("memory that is code", Nobody, |_| {
        let rights = c::PROT_READ | c::PROT_WRITE | c::PROT_EXEC;
        let flags = c::MAP_PRIVATE | c::MAP_ANONYMOUS;
        call(c::SYS_mmap, &[0, 4096, rights as usize, flags as usize, usize::MAX, 0]).map(drop)
    }),
    attempt("mount", Never, |_| {
        let kind = at(c"tmpfs".to_bytes_with_nul());
        call(c::SYS_mount, &[kind, at(c"/mnt".to_bytes_with_nul()), kind, 0, 0]).map(drop)
    }),
    attempt("a namespace", Never, |_| call(c::SYS_unshare, &[c::CLONE_NEWUSER as usize]).map(drop)),
    attempt("another root", Never, |_| {
        call(c::SYS_chroot, &[at(c"/".to_bytes_with_nul())]).map(drop)
    }),
    attempt("another user", Never, |_| call(c::SYS_setuid, &[0]).map(drop)),
    attempt("a module", Never, |_| call(c::SYS_init_module, &[0, 0, 0]).map(drop)),
    attempt("a program of BPF", Never, |_| {
        // `BPF_PROG_GET_FD_BY_ID`: the program of somebody else.
        call(c::SYS_bpf, &[13, 0, 0]).map(drop)
    }),
    attempt("a queue of io_uring", Never, |_| {
        let parameters = [0_u8; 120];
        closed(call(c::SYS_io_uring_setup, &[1, at(&parameters)]))
    }),
    attempt("a key", Never, |_| call(c::SYS_keyctl, &[0, 0]).map(drop)),
    attempt("faults of its own", Never, |_| closed(call(c::SYS_userfaultfd, &[0]))),
    attempt("counters of the processor", Never, |_| {
        let attributes = [0_u8; 128];
        closed(call(c::SYS_perf_event_open, &[at(&attributes), 0, 0, usize::MAX]))
    }),
    attempt("its own limits taken away", Never, |_| call(c::SYS_seccomp, &[0, 0, 0]).map(drop)),
    attempt("text typed into a terminal", Never, |_| {
        call(c::SYS_ioctl, &[0, c::TIOCSTI as usize, at("x")]).map(drop)
    }),
    attempt("the interface taken down", Never, |_| {
        let request = [0_u8; 40];
        // Standard input is not a socket.
        other_than_refusal(call(c::SYS_ioctl, &[0, c::SIOCSIFFLAGS as usize, at(&request)]))
    }),
    attempt("the clock", Never, |_| call(c::SYS_settimeofday, &[0, 0]).map(drop)),
    attempt("a restart", Never, |_| call(c::SYS_reboot, &[0, 0, 0, 0]).map(drop)),
    attempt("start a thread", Nobody, |_| {
        let started = thread::Builder::new().spawn(|| ())?;
        started.join().map_err(|_| io::ErrorKind::Other.into())
    }),
    attempt("map memory", Nobody, |_| {
        let (rights, flags) = (c::PROT_READ | c::PROT_WRITE, c::MAP_PRIVATE | c::MAP_ANONYMOUS);
        call(c::SYS_mmap, &[0, 4096, rights as usize, flags as usize, usize::MAX, 0]).map(drop)
    }),
];

const ICMP: usize = c::IPPROTO_ICMP as usize;

fn socket(family: c::c_int, kind: c::c_int) -> io::Result<i64> {
    call(c::SYS_socket, &[family as usize, kind as usize, 0])
}

/// Closes the descriptor, which is not needed. Passes on an error.
fn closed(opened: io::Result<i64>) -> io::Result<()> {
    call(c::SYS_close, &[opened? as usize]).map(drop)
}

/// Turns other errors into success: the call was not refused.
fn other_than_refusal(done: io::Result<i64>) -> io::Result<()> {
    match done {
        Err(error) if crate::is_refusal(&error) => Err(error),
        _ => Ok(()),
    }
}
