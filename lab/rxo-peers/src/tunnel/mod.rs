//! A WireGuard tunnel between two private networks: starts a program at each end with keys and addresses, and
//! stops both.
//!
//! The programs are foreign ones, or rxo-tunnel, given by its path. Contract: a program runs until its
//! [`Tunnel`] is dropped or this process ends. Nothing is left behind, except the empty directory of foreign
//! programs' sockets.

mod program;
mod uapi;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

pub use program::{TunnelKind, TunnelProgram};

use crate::folder::Folder;
use crate::process::Process;
use rxo_testbed::create_veth;
use rxo_testbed::error::{Context, Result};
use rxo_testbed::{Namespace, until};

/// Two networks on a wire, and a tunnel between them. Traffic to the addresses of [`Tunnel::NEAR`] and
/// [`Tunnel::FAR`] goes through the tunnel.
#[derive(Debug)]
pub struct Tunnel {
    processes: [Process; 2],
    near: Namespace,
    far: Namespace,
    interfaces: [String; 2],
    _folder: Folder,
}

/// One end of the tunnel, with the parameters of the other end.
struct End<'t> {
    program: &'t TunnelProgram,
    namespace: &'t Namespace,
    interface: String,
    keys: &'static Keys,
    peer: &'static Keys,
    peer_outside: IpAddr,
    addresses: [IpAddr; 2],
    folder: &'t Path,
}

/// A fixed pair of keys, as base64 text and as hexadecimal.
struct Keys {
    private: &'static str,
    private_hex: &'static str,
    public: &'static str,
    public_hex: &'static str,
}

const NEAR_KEYS: Keys = Keys {
    private: "yI4bSsPYMoCwySaNvFraci2fvR/uG5NgcBXXWhfRJEg=",
    private_hex: "c88e1b4ac3d83280b0c9268dbc5ada722d9fbd1fee1b93607015d75a17d12448",
    public: "fB2F4UQVDrC+kTlWqHrWrWI5nG7b7sNDaYz3F3jHD0s=",
    public_hex: "7c1d85e144150eb0be913956a87ad6ad62399c6edbeec343698cf71778c70f4b",
};
const FAR_KEYS: Keys = Keys {
    private: "WM5MuIuTj3/SzJLEzhhNmNYqltDschMkVpk/3Cm1mkQ=",
    private_hex: "58ce4cb88b938f7fd2cc92c4ce184d98d62a96d0ec72132456993fdc29b59a44",
    public: "nRF5CpO+PyEFjSl3cvXTGcpA83YhKmFxMLtbbCR9tW8=",
    public_hex: "9d11790a93be3f21058d297772f5d319ca40f376212a617130bb5b6c247db56f",
};
const OUTSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
const PORT: u16 = 51_820;
/// Networks that both sides route into the tunnel.
const INSIDE: [(IpAddr, u8); 2] =
    [(IpAddr::V4(Ipv4Addr::new(10, 99, 0, 0)), 24), (IpAddr::V6(inside(0)), 64)];
/// MTU of WireGuard's interface on a wire with an MTU of 1,500.
const MTU: u32 = 1_420;

const fn inside(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, host)
}

impl Tunnel {
    /// Addresses of the near end inside the tunnel.
    pub const NEAR: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1)), IpAddr::V6(inside(1))];
    /// Addresses of the far end inside the tunnel.
    pub const FAR: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2)), IpAddr::V6(inside(2))];

    /// Makes two networks on a wire with an MTU of 1,500, starts a program in each, and waits until both have
    /// their interfaces. The handshake begins with the first packet of either.
    ///
    /// # Errors
    /// If the networks cannot be made, or a program ends at once; the message contains its output.
    pub fn start(near: &TunnelProgram, far: &TunnelProgram) -> Result<Self> {
        let folder = Folder::new("tunnel")?;
        let namespaces = [Namespace::new("near")?, Namespace::new("far")?];
        let wires = [namespaces[0].interface("wire"), namespaces[1].interface("wire")];
        create_veth(&wires[0], &wires[1])?;
        for (wire, address) in wires.iter().zip(OUTSIDE) {
            wire.add_address(address.into(), 24)?;
            wire.up()?;
        }
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let interfaces = ["n", "f"].map(|side| format!("t{}{side}{number}", std::process::id()));
        let end = |n: usize, program, keys, peer, addresses| {
            let interface = interfaces[n].clone();
            let (namespace, folder) = (&namespaces[n], folder.path());
            let peer_outside = OUTSIDE[1 - n].into();
            End { program, namespace, interface, keys, peer, peer_outside, addresses, folder }
                .start()
        };
        let near = end(0, near, &NEAR_KEYS, &FAR_KEYS, Self::NEAR)?;
        let far = end(1, far, &FAR_KEYS, &NEAR_KEYS, Self::FAR)?;
        let [near_network, far_network] = namespaces;
        let processes = [near, far];
        Ok(Self { processes, near: near_network, far: far_network, interfaces, _folder: folder })
    }

    /// Returns the network of the near end.
    #[must_use]
    pub const fn near(&self) -> &Namespace {
        &self.near
    }

    /// Returns the network of the far end.
    #[must_use]
    pub const fn far(&self) -> &Namespace {
        &self.far
    }

    /// Returns the process ids of the programs, near and far.
    #[must_use]
    pub fn processes(&self) -> [u32; 2] {
        [self.processes[0].id(), self.processes[1].id()]
    }

    /// Ends both programs by SIGTERM and waits for them. Returns the exit code (128 plus the signal's number
    /// if a signal killed it) and the output of each.
    ///
    /// # Errors
    /// If a program does not end within a minute.
    pub fn stop(&mut self) -> Result<[(i32, String); 2]> {
        let [near, far] = &mut self.processes;
        Ok([near.stop()?, far.stop()?])
    }
}

impl Drop for Tunnel {
    /// Stops the programs, and removes sockets that some of them leave behind.
    fn drop(&mut self) {
        let _nobody_hears = self.stop();
        self.interfaces.iter().for_each(|interface| uapi::remove(interface));
    }
}

/// Number of tunnels started. Interfaces of one process need different names, because foreign sockets are
/// named after them.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl End<'_> {
    fn start(&self) -> Result<Process> {
        let key = self.folder.join(&self.interface);
        let write = || {
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&key)?;
            std::io::Write::write_all(&mut file, self.keys.private.as_bytes())
        };
        write().context(|| format!("cannot write {}", key.display()))?;
        let output = key.with_extension("out");
        let command = self.program.command(self, &key);
        let mut process = Process::start(self.namespace, &command, &output)?;
        let interface = self.namespace.interface(&self.interface);
        let is_ours = self.program.kind() == TunnelKind::Rxo;
        // rxo-tunnel reports "is up" after it has set addresses and routes.
        let is_up = || {
            if is_ours { process.said().contains("is up") } else { interface.counters().is_ok() }
        };
        until(|| Ok(is_up() || !process.is_alive()))?
            .context(|| format!("{} makes no interface", command[0]))?;
        process.check()?;
        if !is_ours {
            uapi::configure(self)?;
            for address in self.addresses {
                let bits = if address.is_ipv4() { 24 } else { 64 };
                interface.add_address(address, bits)?;
            }
            interface.set_mtu(MTU)?;
            interface.up()?;
        }
        Ok(process)
    }
}
