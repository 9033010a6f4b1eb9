//! The paper's machine: one core has the driver domain and its guest, the other the card and the sender.
//!
//! The card gives its frames through a ring, as DMA does, and validates checksums. Under Linux the guest has the card
//! itself. Each machine has a network of its own.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::live::{Device, DeviceOptions};
use rxo::worker::GuestsReading;
use rxo::{Counters, Reading};
use rxo_lab::{Guest, GuestImage, Lab, LabOptions, Namespace, Processor};

use crate::card;
use crate::folder::Folder;
use crate::guests::boot;
use crate::machine::Cores;
use crate::running::Running;
use crate::xen::system::System;

/// A guest behind a card. What is nearer to the wire is dropped later.
pub(super) struct Machine {
    guest: Guest,
    /// `None` under Linux.
    domain: Option<Running<GuestsReading>>,
    _card: Running<Reading>,
    lab: Lab,
    _folder: Folder,
}

impl Machine {
    /// Starts it, with a guest whose instructions are not counted.
    ///
    /// # Errors
    /// If the network cannot be built, or the guest does not start.
    pub(super) fn start(image: &GuestImage, system: System) -> Result<Self> {
        let (cores, folder) = (Cores::choose(), Folder::new("xen")?);
        let lab =
            Lab::through_with(LabOptions { peer_core: cores.sender, ..LabOptions::default() })?;
        let card_socket = folder.file("card.sock");
        let card = card::start(&lab, (card_socket.clone(), Duration::ZERO), cores.sender)?;
        let (domain, socket) = match system {
            System::Linux => (None, card_socket),
            _ => {
                let (nic, socket) = (ring_of(&card_socket), folder.guest(0));
                let guests = std::slice::from_ref(&socket);
                let domain = Running::switching(&lab, system, nic, (guests, cores.receiver))?;
                (Some(domain), socket)
            }
        };
        let guest = boot_on(cores.receiver, image, &socket)?;
        Ok(Self { guest, domain, _card: card, lab, _folder: folder })
    }

    /// The guest, and where the sender is.
    pub(super) fn ends(&mut self) -> (&mut Guest, &Namespace) {
        (&mut self.guest, self.lab.peer())
    }

    /// Switches it off. Returns what the engine of the driver domain did; `None` under Linux.
    ///
    /// # Errors
    /// If the driver domain failed.
    pub(super) fn finish(self) -> Result<Option<Counters>> {
        let Self { guest, domain, .. } = self;
        drop(guest);
        let Some(domain) = domain else { return Ok(None) };
        let mut totals = domain.finish()?;
        Ok(Some(totals.guests.pop().context("rxo says nothing of its guest")?.engine))
    }
}

/// The host's side of a card's ring.
fn ring_of(card: &Path) -> impl FnOnce() -> Result<Device> + Send + 'static {
    let name = format!("virtio:{}", card.display());
    move || Ok(Device::open(&name.parse()?, DeviceOptions::default())?)
}

/// Boots a guest on this core: a process stays where its parent was.
fn boot_on(core: Option<usize>, image: &GuestImage, socket: &PathBuf) -> Result<Guest> {
    thread::scope(|scope| {
        let booting = scope.spawn(|| {
            core.map_or(Ok(()), rxo_lab::pin_to_core)?;
            boot(image, Processor::Emulated, socket, 0)
        });
        booting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
