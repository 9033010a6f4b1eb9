//! Where a stack stands: a Linux peer, a wire or a path with a delay, and a namespace for the stack.
//!
//! ```text
//!  a wire:  peer [eth0 10.77.0.1] ===veth=== [eth1] the stack, 10.77.0.2
//!  a path:  peer [eth0 10.77.0.1] ===veth=== [eth1] rxo run, which delays [wire1] ===veth=== [eth1] the stack
//! ```

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo_lab::{Lab, LabOptions, Namespace, Offload, create_veth};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    Linux,
    Rxo,
}

/// A stack's place. What it started ends when it is dropped.
pub(super) struct Place {
    pub(super) stack: Stack,
    pub(super) rxo: PathBuf,
    /// Delays; ends with the place.
    _path: Option<Process>,
    end: Option<Namespace>,
    lab: Lab,
}

/// The end of a path on the path's own side.
const PATH_END: &str = "wire1";

impl Place {
    /// Makes the network, and starts the path if there is a delay.
    pub(super) fn new(stack: Stack, delay: Duration, rxo: &Path) -> Result<Self> {
        let lab = Lab::with_bare_nic(LabOptions::default())?;
        let mut place = Self { stack, rxo: rxo.to_owned(), _path: None, end: None, lab };
        if !delay.is_zero() {
            place.end = Some(place.far_end()?);
            place._path = Some(place.path(delay / 2)?);
        }
        if stack == Stack::Linux {
            let nic = place.namespace().interface(Lab::NIC);
            nic.set_offload(Offload::GenericReceive, true)?;
            nic.add_address(Lab::HOST_ADDRESSES.0.into(), 24)?;
        }
        Ok(place)
    }

    /// The namespace that the stack is in.
    pub(super) fn namespace(&self) -> &Namespace {
        self.end.as_ref().unwrap_or(self.lab.host())
    }

    pub(super) fn peer(&self) -> &Namespace {
        self.lab.peer()
    }

    fn far_end(&self) -> Result<Namespace> {
        let end = Namespace::new("end")?;
        let (near, far) = (self.lab.host().interface(PATH_END), end.interface(Lab::NIC));
        create_veth(&near, &far)?;
        for interface in [&near, &far] {
            interface.set_offload(Offload::TransmitSegmentation, false)?;
            interface.set_offload(Offload::GenericSegmentation, false)?;
            interface.up()?;
        }
        far.await_wire()?;
        Ok(end)
    }

    fn path(&self, each_way: Duration) -> Result<Process> {
        let mut command = Command::new(&self.rxo);
        command.args(["run", "--stats", "0s", "--nic", &format!("packet:{}", Lab::NIC)]);
        command.args(["--host", &format!("packet:{PATH_END}")]);
        for flag in ["--impair", "--impair-back"] {
            command.args([flag, &format!("delay={}ms", each_way.as_millis())]);
        }
        Process::start(self.lab.host(), command)
    }
}

/// A process in a namespace. It is asked to end when it is dropped, and then killed.
pub(super) struct Process {
    child: Child,
    name: String,
}

/// How long a process may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Process {
    pub(super) fn start(namespace: &Namespace, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let name = format!("{command:?}");
        let child =
            namespace.run(|| command.spawn())?.with_context(|| format!("cannot run {name}"))?;
        Ok(Self { child, name })
    }

    /// Fails if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("{} has ended: {status}", self.name),
            None => Ok(()),
        }
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("{} has failed: {status}", self.name),
                None if Instant::now() > deadline => bail!("{} does not end", self.name),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        // At the end it is killed, so nothing that fails before matters.
        _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
