//! The confinement of each kind of rxo process after its start. Data only.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::{Access, Confinement, Kill, Sockets};

impl Confinement {
    /// Returns the confinement of a process that carries frames between open devices: `rxo run`, `guest`,
    /// `card` and `cast join`.
    #[must_use]
    pub fn worker() -> Self {
        Self::default()
    }

    /// Returns the confinement of a worker that may have to reopen or restore an interface without the help of
    /// another process. The worker may write to `folders`, which contain the locks and records of interfaces.
    #[must_use]
    pub fn worker_that_reopens(folders: Vec<PathBuf>) -> Self {
        let capabilities = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
        let mut paths = interfaces(folders);
        paths.push(("/dev/net/tun".into(), Access::Write));
        Self { paths, sockets: Sockets::Devices, capabilities, ..Self::default() }
    }

    /// Returns the confinement of a host on an open device: `rxo serve`, `sink`, `source`, `cat`, `cast send`
    /// and `cast receive`. `paths` are opened while the command runs.
    #[must_use]
    pub fn host(paths: Vec<(PathBuf, Access)>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Permits unix sockets if `connects` is `true`, because a device `virtio:PATH` connects again after its
    /// peer process has ended.
    #[must_use]
    pub fn with_connections(mut self, connects: bool) -> Self {
        if connects && self.sockets == Sockets::None {
            self.sockets = Sockets::Unix;
        }
        self
    }

    /// Adds the rights that opening an AF_XDP socket needs, if `reopens` is `true` and the confinement permits opening
    /// devices: to load and attach a program, and to lock the memory of frames.
    #[must_use]
    pub fn with_programs(mut self, reopens: bool) -> Self {
        if reopens && self.sockets == Sockets::Devices {
            self.attaches_programs = true;
            self.capabilities |= CapabilitySet::BPF | CapabilitySet::IPC_LOCK;
        }
        self
    }

    /// Returns the confinement of the keeper of a run: the process that restores interfaces, and kills the
    /// process `worker`. The keeper may write to `folders`, which contain the locks and records of interfaces,
    /// and may remove socket files in the folders `sockets`.
    #[must_use]
    pub fn keeper(worker: u32, folders: Vec<PathBuf>, sockets: Vec<PathBuf>) -> Self {
        let kill = Kill::Process(worker);
        Self { kill, ..Self::restorer(folders, sockets) }
    }

    /// Adds the right to read the files in `folders`.
    #[must_use]
    pub fn reading(mut self, folders: Vec<PathBuf>) -> Self {
        self.paths.extend(folders.into_iter().map(|folder| (folder, Access::Read)));
        self
    }

    /// Returns the confinement of the restorer, the last process of a run, which restores interfaces if all
    /// other processes were killed. The restorer may write to `folders`, which contain the locks and records of
    /// interfaces, and may remove socket files in the folders `sockets`.
    #[must_use]
    pub fn restorer(folders: Vec<PathBuf>, sockets: Vec<PathBuf>) -> Self {
        let mut paths = interfaces(folders);
        paths.extend(sockets.into_iter().map(|folder| (folder, Access::Remove)));
        // The folder of a socket may belong to another user.
        let capabilities = CapabilitySet::NET_ADMIN | CapabilitySet::DAC_OVERRIDE;
        Self {
            paths,
            sockets: Sockets::Interfaces,
            kill: Kill::Given,
            capabilities,
            ..Self::default()
        }
    }

    /// Returns the confinement of a process that removes socket files after another process has ended.
    /// The process may remove socket files in the folders `sockets`, and may write to `folders`, which contain the
    /// lock files.
    #[must_use]
    pub fn remover(folders: Vec<PathBuf>, sockets: Vec<PathBuf>) -> Self {
        let locks = folders.into_iter().map(|folder| (folder, Access::Write));
        let paths = sockets.into_iter().map(|folder| (folder, Access::Remove)).chain(locks);
        Self {
            paths: paths.collect(),
            sockets: Sockets::Unix,
            capabilities: CapabilitySet::DAC_OVERRIDE,
            ..Self::default()
        }
    }
}

/// Returns the paths that must be read and written to change interfaces.
fn interfaces(folders: Vec<PathBuf>) -> Vec<(PathBuf, Access)> {
    let settings = ("/proc/sys/net".into(), Access::Write);
    let folders = folders.into_iter().map(|folder| (folder, Access::Write));
    [("/proc".into(), Access::Read), settings].into_iter().chain(folders).collect()
}
