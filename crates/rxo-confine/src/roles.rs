//! What each process of rxo needs once it has begun. Data only.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::{Access, Confinement, Kill, Sockets};

impl Confinement {
    /// A process that carries frames between devices that are open: `rxo run`, `guest`, `card` and `cast join`.
    #[must_use]
    pub fn worker() -> Self {
        Self::default()
    }

    /// A worker that may have to open an interface again, or to restore one by itself. `folders` are those of locks and
    /// records.
    #[must_use]
    pub fn worker_that_reopens(folders: Vec<PathBuf>) -> Self {
        let capabilities = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
        let mut paths = interfaces(folders);
        paths.push(("/dev/net/tun".into(), Access::Write));
        Self { paths, sockets: Sockets::Devices, capabilities, ..Self::default() }
    }

    /// A host of rxo's own on a device that is open: `rxo serve`, `sink`, `source`, `cat`, `cast send` and `cast receive`.
    /// `paths` are what the command opens while it runs.
    #[must_use]
    pub fn host(paths: Vec<(PathBuf, Access)>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Beside what is needed anyway, unix sockets if a device connects again when its other side has gone: `virtio:PATH`.
    #[must_use]
    pub fn with_connections(mut self, connects: bool) -> Self {
        if connects && self.sockets == Sockets::None {
            self.sockets = Sockets::Unix;
        }
        self
    }

    /// The keeper of a run, which restores interfaces and ends `worker`. `folders` are those of locks and records,
    /// `sockets` those in which it removes the files of sockets.
    #[must_use]
    pub fn keeper(worker: u32, folders: Vec<PathBuf>, sockets: Vec<PathBuf>) -> Self {
        let kill = Kill::Process(worker);
        Self { kill, ..Self::restorer(folders, sockets) }
    }

    /// Beside what is needed anyway, the files in `folders`, which may be read.
    #[must_use]
    pub fn reading(mut self, folders: Vec<PathBuf>) -> Self {
        self.paths.extend(folders.into_iter().map(|folder| (folder, Access::Read)));
        self
    }

    /// The last process of a run, which restores interfaces if the others were ended at once.
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

    /// A process that removes the files of sockets in `sockets` when another has ended. `folders` are those of locks.
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

/// What is read and written to change interfaces.
fn interfaces(folders: Vec<PathBuf>) -> Vec<(PathBuf, Access)> {
    let settings = ("/proc/sys/net".into(), Access::Write);
    let folders = folders.into_iter().map(|folder| (folder, Access::Write));
    [("/proc".into(), Access::Read), settings].into_iter().chain(folders).collect()
}
