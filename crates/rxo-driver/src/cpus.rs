//! Processors: binds the thread that carries frames to one processor.
#![allow(unsafe_code, reason = "a system call for which the standard library has no name")]

use std::io;

use crate::sys::check;

/// The processors that a thread may use.
#[derive(Clone, Debug)]
pub struct CpuSet([u64; CPUS / 64]);

impl CpuSet {
    /// Returns the processors that the calling thread may use.
    ///
    /// # Errors
    /// If the system does not report them.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut set = [0_u64; CPUS / 64];
        let bytes = size_of_val(&set);
        // SAFETY: the kernel writes at most `bytes` bytes into a live array.
        let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, set.as_mut_ptr()) };
        check(got as libc::c_int).map(|_| Self(set))
    }

    /// Binds the calling thread to these processors. Threads that it starts later are bound too.
    ///
    /// # Errors
    /// If this process may use none of them.
    pub fn apply(&self) -> io::Result<()> {
        let bytes = size_of_val(&self.0);
        // SAFETY: the kernel reads `bytes` bytes of a live array.
        let bound =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, self.0.as_ptr()) };
        check(bound as libc::c_int).map(drop)
    }
}

/// Binds the calling thread to one processor. Threads that it starts later are bound too.
///
/// # Errors
/// If there is no such processor, or this process may not use it.
pub fn bind_to_cpu(cpu: u16) -> io::Result<()> {
    let mut set = CpuSet([0; CPUS / 64]);
    let word = set.0.get_mut(usize::from(cpu) / 64).ok_or(io::ErrorKind::InvalidInput)?;
    *word = 1 << (cpu % 64);
    set.apply()
}

/// Returns `true` if the calling thread may run on `cpu`; also returns `true` if the system does not report
/// the permitted processors.
#[must_use]
pub fn may_use_cpu(cpu: u16) -> bool {
    CpuSet::of_this_thread().map_or(true, |set| {
        let word = set.0.get(usize::from(cpu) / 64).copied().unwrap_or_default();
        word & 1 << (cpu % 64) != 0
    })
}

/// Maximum number of processors of a Linux system.
const CPUS: usize = 8_192;

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    #[test]
    fn a_thread_stays_on_its_processor() {
        let allowed = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        };
        thread::spawn(move || {
            let (all, before) = (allowed(), CpuSet::of_this_thread().unwrap());
            let first: u16 = all.split([',', '-']).next().unwrap().parse().unwrap();
            bind_to_cpu(first).unwrap();
            assert_eq!(allowed(), first.to_string());
            assert!(bind_to_cpu(8_191).is_err() && bind_to_cpu(u16::MAX).is_err());
            assert!(may_use_cpu(first) && !may_use_cpu(8_191) && !may_use_cpu(u16::MAX));
            assert!((0..64).filter(|&cpu| may_use_cpu(cpu)).eq([first]));
            before.apply().unwrap();
            assert_eq!(allowed(), all);
        })
        .join()
        .unwrap();
    }
}
