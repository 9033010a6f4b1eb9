//! The system calls that stay allowed, grouped by purpose. Data only, with few conditions on arguments.
//!
//! The list covers both C libraries, glibc and musl, on x86-64 and AArch64. Arguments are compared as 32
//! bits: descriptors, flag words and requests are not longer.

use libc::{self as c, c_int};

use crate::{Access, Confinement, Kill, Sockets};

/// A rule that allows a system call, always or on a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Always(i64),
    /// The call is allowed if the argument with this index, combined with the mask, equals the value:
    /// `(index, mask, value)`.
    If(i64, (u8, u32, u32)),
    IfBoth(i64, (u8, u32, u32), (u8, u32, u32)),
    /// The call is allowed unless the argument with this index has one of these two values.
    Unless(i64, u8, [u32; 2]),
}

impl Rule {
    pub(super) const fn call(self) -> i64 {
        match self {
            Self::Always(call)
            | Self::If(call, _)
            | Self::IfBoth(call, ..)
            | Self::Unless(call, ..) => call,
        }
    }
}

/// Returns the rules for all system calls that `confinement` needs.
pub(super) fn rules(confinement: &Confinement) -> Vec<Rule> {
    let Confinement { paths, sockets, attaches_programs, kill, .. } = confinement;
    let writes = paths.iter().any(|(_, access)| *access != Access::Read);
    let (opens, changes) = match sockets {
        Sockets::None | Sockets::Unix => (false, false),
        Sockets::Interfaces => (false, true),
        Sockets::Devices => (true, true),
    };
    let mut rules = always(&[DESCRIPTORS, WAITING, MEMORY, THREADS, ASKING, OLD, ABSENT]);
    rules.extend(with_conditions());
    rules.extend(always(if paths.is_empty() { &[] } else { &[OPENING, OLD_OPENING] }));
    rules.extend(always(if writes { &[CHANGING, OLD_CHANGING] } else { &[] }));
    rules.extend(always(if *sockets == Sockets::None { &[] } else { &[CONNECTING] }));
    rules.extend(always(if opens { &[QUEUES] } else { &[] }));
    rules.extend(changes.then_some(Rule::Always(c::SYS_setsockopt)));
    rules.extend(changes.then_some(Rule::Unless(c::SYS_ioctl, 1, TYPING)));
    rules.extend(socket(*sockets));
    rules.extend(programs(*attaches_programs));
    rules.extend(signals(*kill));
    rules
}

fn always(lists: &[&[i64]]) -> Vec<Rule> {
    lists.iter().flat_map(|list| list.iter()).copied().map(Rule::Always).collect()
}

/// Returns the rules for system calls that are allowed only with certain arguments.
fn with_conditions() -> Vec<Rule> {
    let own = std::process::id();
    let not_executable = (2, c::PROT_EXEC as u32, 0);
    let mut rules = vec![
        // No memory may become executable, so injected bytes cannot run.
        Rule::If(c::SYS_mmap, not_executable),
        Rule::If(c::SYS_mprotect, not_executable),
        // Starts threads, but neither processes nor namespaces.
        Rule::If(c::SYS_clone, (0, THREAD | NAMESPACES, THREAD)),
        // `abort` in glibc and in musl sends a signal to its own process.
        Rule::If(c::SYS_tgkill, (0, ALL, own)),
        Rule::If(c::SYS_kill, (0, ALL, own)),
        // Process 0 is the caller: only its own limits are read or set.
        Rule::If(c::SYS_prlimit64, (0, ALL, 0)),
        Rule::If(c::SYS_socketpair, (0, ALL, c::AF_UNIX as u32)),
        // An io_uring queue is closed by unregistering the file of the device to which it writes. The writing
        // thread enables the queue after restricting it.
        Rule::If(c::SYS_io_uring_register, (1, ALL, IORING_UNREGISTER_FILES)),
        Rule::If(c::SYS_io_uring_register, (1, ALL, IORING_REGISTER_ENABLE_RINGS)),
    ];
    rules.extend(PRCTL.map(|what| Rule::If(c::SYS_prctl, (0, ALL, what as u32))));
    rules.extend(IOCTL.map(|request| Rule::If(c::SYS_ioctl, (1, ALL, request))));
    rules.extend(OPTIONS.map(|(level, option)| {
        Rule::IfBoth(c::SYS_setsockopt, (1, ALL, level as u32), (2, ALL, option as u32))
    }));
    rules
}

fn socket(sockets: Sockets) -> Vec<Rule> {
    let of = |family: c_int| Rule::If(c::SYS_socket, (0, ALL, family as u32));
    let datagrams = |family: c_int| {
        Rule::IfBoth(c::SYS_socket, (0, ALL, family as u32), (1, 0xf, c::SOCK_DGRAM as u32))
    };
    match sockets {
        Sockets::None => Vec::new(),
        Sockets::Unix => vec![of(c::AF_UNIX)],
        Sockets::Interfaces | Sockets::Devices => {
            let mut rules = vec![of(c::AF_UNIX), of(c::AF_NETLINK)];
            rules.extend([c::AF_INET, c::AF_INET6].map(datagrams));
            rules.extend((sockets == Sockets::Devices).then(|| of(c::AF_PACKET)));
            rules
        }
    }
}

/// Returns the rules for the system calls that open an AF_XDP socket and attach its program.
fn programs(attaches: bool) -> Vec<Rule> {
    let of = |command: u32| Rule::If(c::SYS_bpf, (0, ALL, command));
    let socket = Rule::If(c::SYS_socket, (0, ALL, c::AF_XDP as u32));
    let all = PROGRAMS.into_iter().map(of).chain([socket]);
    all.filter(|_| attaches).collect()
}

fn signals(kill: Kill) -> Vec<Rule> {
    match kill {
        Kill::None => Vec::new(),
        Kill::Process(process) => {
            vec![Rule::If(c::SYS_kill, (0, ALL, process)), Rule::Always(c::SYS_pidfd_send_signal)]
        }
        Kill::Given => vec![Rule::Always(c::SYS_pidfd_send_signal)],
    }
}

const ALL: u32 = u32::MAX;
const THREAD: u32 = c::CLONE_THREAD as u32;
const NAMESPACES: u32 = (c::CLONE_NEWNS
    | c::CLONE_NEWCGROUP
    | c::CLONE_NEWUTS
    | c::CLONE_NEWIPC
    | c::CLONE_NEWUSER
    | c::CLONE_NEWPID
    | c::CLONE_NEWNET) as u32;
const IORING_UNREGISTER_FILES: u32 = 3;
const IORING_REGISTER_ENABLE_RINGS: u32 = 12;

/// System calls that fail with ENOSYS ("not implemented"), so that the C library uses older ones. The flags
/// of `clone3` are in memory, where a filter cannot read them.
pub(super) const ABSENT: &[i64] = &[c::SYS_clone3];

/// System calls on descriptors that are already open.
const DESCRIPTORS: &[i64] = &[
    c::SYS_read,
    c::SYS_readv,
    c::SYS_pread64,
    c::SYS_preadv,
    c::SYS_preadv2,
    c::SYS_write,
    c::SYS_writev,
    c::SYS_pwrite64,
    c::SYS_pwritev,
    c::SYS_pwritev2,
    c::SYS_lseek,
    c::SYS_close,
    c::SYS_close_range,
    c::SYS_dup,
    c::SYS_dup3,
    c::SYS_fcntl,
    c::SYS_flock,
    c::SYS_fstat,
    c::SYS_newfstatat,
    c::SYS_statx,
    c::SYS_readlinkat,
    c::SYS_getdents64,
    c::SYS_fsync,
    c::SYS_fdatasync,
    c::SYS_ftruncate,
    c::SYS_fallocate,
    c::SYS_fadvise64,
    c::SYS_pipe2,
    c::SYS_eventfd2,
    c::SYS_recvfrom,
    c::SYS_recvmsg,
    c::SYS_recvmmsg,
    c::SYS_sendto,
    c::SYS_sendmsg,
    c::SYS_sendmmsg,
    c::SYS_accept4,
    c::SYS_accept,
    c::SYS_shutdown,
    c::SYS_getsockopt,
    c::SYS_getsockname,
    c::SYS_getpeername,
    c::SYS_io_uring_enter,
];

const WAITING: &[i64] = &[
    c::SYS_ppoll,
    c::SYS_pselect6,
    c::SYS_epoll_create1,
    c::SYS_epoll_ctl,
    c::SYS_epoll_pwait,
    c::SYS_epoll_pwait2,
    c::SYS_timerfd_create,
    c::SYS_timerfd_settime,
    c::SYS_timerfd_gettime,
    c::SYS_nanosleep,
    c::SYS_clock_nanosleep,
    c::SYS_clock_gettime,
    c::SYS_clock_getres,
    c::SYS_gettimeofday,
    c::SYS_restart_syscall,
    c::SYS_wait4,
    c::SYS_waitid,
];

const MEMORY: &[i64] = &[
    c::SYS_memfd_create,
    c::SYS_munmap,
    c::SYS_mremap,
    c::SYS_madvise,
    c::SYS_brk,
    c::SYS_mlock,
    c::SYS_munlock,
];

/// System calls to start and end threads, and to handle their signals.
const THREADS: &[i64] = &[
    c::SYS_futex,
    c::SYS_set_robust_list,
    c::SYS_rseq,
    c::SYS_set_tid_address,
    c::SYS_membarrier,
    c::SYS_sched_yield,
    c::SYS_sched_getaffinity,
    c::SYS_sched_setaffinity,
    c::SYS_rt_sigaction,
    c::SYS_rt_sigprocmask,
    c::SYS_rt_sigreturn,
    c::SYS_sigaltstack,
    c::SYS_exit,
    c::SYS_exit_group,
];

/// System calls with which a process queries its own state.
const ASKING: &[i64] = &[
    c::SYS_getpid,
    c::SYS_getppid,
    c::SYS_gettid,
    c::SYS_getpgid,
    c::SYS_getsid,
    c::SYS_getuid,
    c::SYS_geteuid,
    c::SYS_getgid,
    c::SYS_getegid,
    c::SYS_getcwd,
    c::SYS_getcpu,
    c::SYS_getrandom,
    c::SYS_getrusage,
    c::SYS_sysinfo,
    c::SYS_uname,
    c::SYS_umask,
];

/// Older forms of some allowed system calls, which x86-64 has in addition to the newer forms, and which musl
/// uses.
#[cfg(target_arch = "x86_64")]
const OLD: &[i64] = &[
    c::SYS_stat,
    c::SYS_lstat,
    c::SYS_readlink,
    c::SYS_dup2,
    c::SYS_pipe,
    c::SYS_poll,
    c::SYS_select,
    c::SYS_epoll_wait,
    c::SYS_getpgrp,
    c::SYS_getrlimit,
    c::SYS_time,
    c::SYS_getdents,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[i64] = &[];

const OPENING: &[i64] = &[c::SYS_openat, c::SYS_openat2, c::SYS_faccessat, c::SYS_faccessat2];
#[cfg(target_arch = "x86_64")]
const OLD_OPENING: &[i64] = &[c::SYS_open, c::SYS_access];
#[cfg(not(target_arch = "x86_64"))]
const OLD_OPENING: &[i64] = &[];

const CHANGING: &[i64] =
    &[c::SYS_mkdirat, c::SYS_unlinkat, c::SYS_renameat, c::SYS_renameat2, c::SYS_fchmod];
#[cfg(target_arch = "x86_64")]
const OLD_CHANGING: &[i64] = &[c::SYS_mkdir, c::SYS_unlink, c::SYS_rename];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CHANGING: &[i64] = &[];

const CONNECTING: &[i64] = &[c::SYS_connect, c::SYS_bind];

/// Allowed commands of `bpf`: to create a map, to put a socket into it, to load a program, and to attach it.
const PROGRAMS: [u32; 4] = [0, 2, 5, 28];

const QUEUES: &[i64] = &[c::SYS_io_uring_setup, c::SYS_io_uring_register];

/// `ioctl` requests that are refused: they insert characters into a terminal, which a shell would execute. A
/// process that changes interfaces may make all other requests, because it needs many, and they require
/// capabilities.
const TYPING: [u32; 2] = [c::TIOCSTI as u32, c::TIOCLINUX as u32];

/// Allowed operations of `prctl`: to name threads, to set the precision of timers, and to name memory regions.
const PRCTL: [c_int; 4] = [c::PR_SET_NAME, c::PR_GET_NAME, c::PR_SET_TIMERSLACK, c::PR_SET_VMA];

/// Allowed `ioctl` requests. Without capabilities, the requests on sockets, terminals and interfaces only read
/// state, or change the blocking mode and the inheritance of a descriptor.
const IOCTL: [u32; 14] = [
    c::FIONBIO as u32,
    c::FIOCLEX as u32,
    c::FIONREAD as u32,
    c::TIOCOUTQ as u32,
    c::TCGETS as u32,
    c::TIOCGWINSZ as u32,
    c::TIOCGPGRP as u32,
    c::SIOCGIFNAME as u32,
    c::SIOCGIFFLAGS as u32,
    c::SIOCGIFINDEX as u32,
    c::SIOCGIFMTU as u32,
    c::SIOCGIFHWADDR as u32,
    // Reads the coalescing settings of an interface. Changing them takes a capability.
    c::SIOCETHTOOL as u32,
    // Watches memory of a guest for holes (UFFDIO_REGISTER), by a descriptor that was opened before.
    0xc020_aa00,
];

/// Allowed socket options as level and name: the timeouts of a socket.
const OPTIONS: [(c_int, c_int); 2] =
    [(c::SOL_SOCKET, c::SO_RCVTIMEO), (c::SOL_SOCKET, c::SO_SNDTIMEO)];
