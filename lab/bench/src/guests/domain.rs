//! The system between the wire and the guest.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::Signal;
use rxo_peers::GuestNet;
use rxo_testbed::Lab;

use crate::process::{interrupt, signal, wait_until, with_children};

/// rxo's end of the TAP to which the guest's card is connected.
const GUEST_TAP: &str = "guest0";
const RXO_TAP: &str = "rxo0";
/// testpmd's end of the TAP.
const TESTPMD_TAP: &str = "dpdk0";
const BRIDGE: &str = "br0";
const TESTPMD: &str = "dpdk-testpmd";

/// A driver domain, with the guest's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Domain {
    kind: Kind,
    /// `true` if the guest's own GRO is on.
    guest_gro: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `rxo run --host vhost:`, with this policy.
    Vhost(&'static str),
    /// `rxo guest` with a single guest and this policy. Its default is adaptive hold.
    Guest(&'static str),
    /// `rxo run --host tap:`, bridged to QEMU's TAP.
    Tap,
    /// DPDK's testpmd with software GRO.
    Testpmd,
}

const COALESCING: &str = "linux-gro";
const NONE: &str = "none";

impl Domain {
    /// Returns all systems, in the order of the table.
    pub(super) fn all() -> [Self; 6] {
        [
            Self::plain(true),
            Self::coalescing(true),
            Self::plain(false),
            Self::coalescing(false),
            Self::TAP,
            Self::TESTPMD,
        ]
    }

    pub(super) const TAP: Self = Self { kind: Kind::Tap, guest_gro: true };
    pub(super) const TESTPMD: Self = Self { kind: Kind::Testpmd, guest_gro: true };

    /// Makes a domain in which rxo forwards frames without coalescing.
    pub(super) const fn plain(guest_gro: bool) -> Self {
        Self { kind: Kind::Vhost(NONE), guest_gro }
    }

    /// Makes a domain in which rxo coalesces.
    pub(super) const fn coalescing(guest_gro: bool) -> Self {
        Self { kind: Kind::Vhost(COALESCING), guest_gro }
    }

    /// Makes a domain of `rxo guest`, with adaptive hold or without coalescing.
    pub(super) const fn guest(coalesces: bool) -> Self {
        Self { kind: Kind::Guest(if coalesces { COALESCING } else { NONE }), guest_gro: true }
    }

    pub(super) fn name(self) -> String {
        let domain = match self.kind {
            Kind::Vhost(policy) => format!("rxo vhost:, {policy}"),
            Kind::Guest(policy) => format!("rxo guest, {policy}"),
            Kind::Tap => "rxo tap:, linux-gro".to_owned(),
            Kind::Testpmd => "testpmd, software GRO".to_owned(),
        };
        format!("{domain}, guest GRO {}", if self.guest_gro { "on" } else { "off" })
    }

    pub(super) fn guest_gro(self) -> bool {
        self.guest_gro
    }

    /// Returns the reason why the domain cannot run here; `None` if it can.
    pub(super) fn obstacle(self) -> Option<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|folder| folder.join(TESTPMD).is_file());
        (self.kind == Kind::Testpmd && !is_there)
            .then(|| format!("{TESTPMD} is not installed: apt-get install dpdk-dev"))
    }

    pub(super) fn net(self, socket: &Path) -> GuestNet {
        match self.kind {
            Kind::Tap => GuestNet::Tap(GUEST_TAP.to_owned()),
            Kind::Vhost(_) | Kind::Guest(_) | Kind::Testpmd => GuestNet::Vhost(socket.to_owned()),
        }
    }

    /// Starts the domain in the host's namespace of `lab`.
    pub(super) fn start(self, lab: &Lab, rxo: &Path, socket: &Path) -> Result<Running> {
        let nic = format!("packet:{}", Lab::WIRE_INTERFACE);
        let rxo = |line: &str, flag: &str, host: String, policy: &str| {
            let mut command = Command::new(rxo);
            command.args([line, "--json", "--stats", "1s", "--nic", &nic, flag, &host]);
            command.args(["--policy", policy]);
            command
        };
        let path = socket.display();
        let command = match self.kind {
            Kind::Vhost(policy) => rxo("run", "--host", format!("vhost:{path}"), policy),
            Kind::Guest(policy) => rxo("guest", "--vhost", format!("vm={path},learn=yes"), policy),
            Kind::Tap => rxo("run", "--host", format!("tap:{RXO_TAP}"), COALESCING),
            Kind::Testpmd => testpmd(socket),
        };
        let log = socket.with_extension("log");
        let running = Running::start(lab, command, log)?;
        match self.kind {
            Kind::Tap => bridge(lab, &[RXO_TAP])?,
            Kind::Testpmd => bridge(lab, &[TESTPMD_TAP, Lab::WIRE_INTERFACE])?,
            Kind::Vhost(_) | Kind::Guest(_) => {}
        }
        if self.kind != Kind::Tap {
            wait_until("the socket is there", || socket.exists())?;
        }
        Ok(running)
    }

    /// Connects the guest after it has started.
    pub(super) fn attach(self, lab: &Lab) -> Result<()> {
        if self.kind == Kind::Tap {
            let tap = lab.host().interface(GUEST_TAP);
            tap.join_bridge(&lab.host().interface(BRIDGE))?;
            tap.up()?;
        }
        Ok(())
    }
}

/// Makes a bridge of `interfaces` once they exist.
fn bridge(lab: &Lab, ports: &[&str]) -> Result<()> {
    let bridge = lab.host().interface(BRIDGE);
    bridge.create_bridge()?;
    for name in ports {
        let port = lab.host().interface(name);
        wait_until(&format!("{name} is there"), || port.exists())?;
        port.join_bridge(&bridge)?;
        port.up()?;
    }
    bridge.up()?;
    Ok(())
}

/// Returns the command of testpmd between a TAP and the socket. Its checksum engine is used because only that
/// one coalesces. It coalesces packets whose type the driver reports, as a TAP's driver does and that of
/// packet sockets (`net_af_packet`) does not.
fn testpmd(socket: &Path) -> Command {
    let mut command = Command::new(TESTPMD);
    command.args(["--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"]);
    command.args(["--lcores", "0@(0,1),1@(0,1)"]);
    command.args(["--vdev", &format!("net_tap0,iface={TESTPMD_TAP}")]);
    command.args(["--vdev", &format!("net_vhost0,iface={},queues=1,tso=1", socket.display())]);
    command.args(["--", "-i", "--no-flush-rx", "--total-num-mbufs=16384", "--no-lsc-interrupt"]);
    // A port that stops when its guest connects would lose it, and waiting for its link takes seconds.
    command.args(["--disable-device-start", "--disable-link-check"]);
    command.envs(socket.parent().map(|folder| ("RUNTIME_DIRECTORY", folder)));
    command
}

const TESTPMD_COMMANDS: &str = "\
set fwd csum
csum mac-swap off 0
csum mac-swap off 1
csum set tcp hw 1
tso set 1448 1
set port 0 gro on
set gro flush 4
port start all
start
";

/// A running driver domain. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// Standard input of testpmd, which ends when this closes.
    input: Option<ChildStdin>,
    log: PathBuf,
}

impl Running {
    fn start(lab: &Lab, mut command: Command, log: PathBuf) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&log)?;
        let is_testpmd = command.get_program() == TESTPMD;
        command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let child = lab.host().run(|| command.spawn())?;
        let mut child = child.with_context(|| format!("cannot run {command:?}"))?;
        let mut input = child.stdin.take();
        if let (true, Some(input)) = (is_testpmd, &mut input) {
            input.write_all(TESTPMD_COMMANDS.as_bytes())?;
        }
        Ok(Self { child, input, log })
    }

    /// Returns the ids of the domain's processes: rxo waits in one and works in another.
    pub(super) fn processes(&self) -> Vec<u32> {
        with_children(self.child.id())
    }

    /// Stops or continues a domain that polls all the time, so that it leaves the processor to the others.
    pub(super) fn set_awake(&self, is_awake: bool) {
        if self.processes().len() == 1 {
            signal(&self.child, if is_awake { Signal::CONT } else { Signal::STOP });
        }
    }

    /// Ends rxo and returns the last JSON line that it printed.
    pub(super) fn end(&mut self) -> Result<String> {
        signal(&self.child, Signal::INT);
        self.child.wait()?;
        let said = std::fs::read_to_string(&self.log)?;
        Ok(said.lines().rfind(|line| line.starts_with('{')).unwrap_or_default().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.set_awake(true);
        }
        drop(self.input.take());
        interrupt(&mut self.child);
    }
}
