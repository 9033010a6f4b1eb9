//! The place of a stack: a Linux peer, a wire or a path, and a namespace for the stack.
//!
//! ```text
//!  a wire:  peer [eth0 10.77.0.1] ===veth=== [eth1] the stack, 10.77.0.2
//!  a path:  peer [eth0 10.77.0.1] ===veth=== [eth1] rxo run, which delays and loses [wire1] ===veth===
//!           [eth1] the stack
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use rxo_testbed::{Interface, Lab, LabOptions, Namespace, Offload, create_veth};
use serde::Serialize;

use super::RFC_6928;
use super::case::Net;
use super::congestion::Congestion;
use crate::process::Process;

/// The measured stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stack {
    Linux,
    Rxo,
}

/// A stack's place. Dropping this ends the processes that it started.
pub(crate) struct Place {
    pub(crate) stack: Stack,
    pub(crate) rxo: PathBuf,
    /// Congestion control of Linux at both ends, and of rxo.
    pub(super) congestion: Congestion,
    /// Initial window of rxo, in the notation of its flag.
    pub(super) initial_window: String,
    /// Workers of rxo.
    pub(super) workers: u32,
    /// The process that delays and loses frames; `None` for a wire.
    path: Option<Process>,
    end: Option<Namespace>,
    lab: Lab,
}

/// Local ports of Linux's side, which closes first where it sends. Each of its connections then keeps a port for a
/// minute (TIME-WAIT), unless the next may take it over (RFC 6191). With the 28,232 ports of Linux's default the third
/// round of 10,000 connections found none.
const LOCAL_PORTS: &str = "1024 65535";
/// Interface at the path's end towards the stack.
const PATH_END: &str = "wire1";

impl Place {
    /// Makes the network, and starts the path unless `net` is a wire.
    pub(crate) fn new(stack: Stack, net: &Net, rxo: &Path) -> Result<Self> {
        let lab = Lab::with_bare_nic(LabOptions { mtu: net.mtu, ..LabOptions::default() })?;
        let wire = [lab.peer().interface(Lab::PEER_INTERFACE), lab.host().interface(Lab::NIC)];
        wire.iter().try_for_each(|end| set_segmentation(end, net.tso))?;
        let mut place = Self {
            stack,
            rxo: rxo.to_owned(),
            congestion: Congestion::default(),
            initial_window: RFC_6928.to_owned(),
            workers: 1,
            path: None,
            end: None,
            lab,
        };
        if !net.is_wire() {
            place.end = Some(place.far_end(net)?);
            place.path = Some(place.start_path(net)?);
        }
        let nic = place.namespace().interface(Lab::NIC);
        // GRO is on, as with a card's driver; a veth has it off by default.
        nic.set_offload(Offload::GenericReceive, true)?;
        if stack == Stack::Linux {
            nic.add_address(Lab::HOST_ADDRESSES.0.into(), 24)?;
            place.namespace().set_sysctl("net.ipv4.ip_local_port_range", LOCAL_PORTS)?;
            place.namespace().set_sysctl("net.ipv4.tcp_tw_reuse", "1")?;
        }
        Ok(place)
    }

    /// Sets the congestion control.
    pub(super) fn with_congestion(self, congestion: Congestion) -> Self {
        Self { congestion, ..self }
    }

    /// Sets rxo's initial window.
    pub(super) fn beginning_with(self, initial_window: &str) -> Self {
        Self { initial_window: initial_window.to_owned(), ..self }
    }

    /// Sets the number of rxo's workers.
    pub(super) fn with_workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// Turns GRO off, which is a veth's default.
    pub(super) fn without_gro(self) -> Result<Self> {
        self.namespace().interface(Lab::NIC).set_offload(Offload::GenericReceive, false)?;
        Ok(self)
    }

    /// Returns the stack's namespace.
    pub(crate) fn namespace(&self) -> &Namespace {
        self.end.as_ref().unwrap_or(self.lab.host())
    }

    pub(crate) fn peer(&self) -> &Namespace {
        self.lab.peer()
    }

    /// Returns the id of the path's process; `None` for a wire.
    pub(crate) fn path_process(&self) -> Option<u32> {
        self.path.as_ref().map(Process::id)
    }

    fn far_end(&self, net: &Net) -> Result<Namespace> {
        let end = Namespace::new("end")?;
        let (near, far) = (self.lab.host().interface(PATH_END), end.interface(Lab::NIC));
        create_veth(&near, &far)?;
        for interface in [&near, &far] {
            interface.set_mtu(net.mtu)?;
            set_segmentation(interface, net.tso)?;
            interface.up()?;
        }
        far.await_wire()?;
        Ok(end)
    }

    fn start_path(&self, net: &Net) -> Result<Process> {
        let mut command = Command::new(&self.rxo);
        command.args(["run", "--stats", "0s", "--nic", &format!("packet:{}", Lab::NIC)]);
        command.args(["--host", &format!("packet:{PATH_END}")]);
        let (loss, delay) = (net.loss_percent, net.each_way().as_millis());
        for flag in ["--impair", "--impair-back"] {
            command.args([flag, &format!("loss={loss}%,delay={delay}ms")]);
        }
        Process::start(self.lab.host(), command)
    }
}

/// Sets whether GSO frames cross the interface whole, or the sender segments them.
fn set_segmentation(interface: &Interface<'_>, is_left_out: bool) -> Result<()> {
    for offload in [Offload::TransmitSegmentation, Offload::GenericSegmentation] {
        interface.set_offload(offload, is_left_out)?;
    }
    Ok(())
}
