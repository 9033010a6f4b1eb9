//! A machine of two cores: a driver domain and its guest on one, the card and the sender on the other.
//!
//! The card delivers frames through a ring, like DMA, and validates checksums. Without a driver domain the guest
//! owns the card. Each machine has its own network. While the guest runs, the driver domain can change its policy.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rxo::desk::{Desk, Reply};
use rxo::live::{Device, DeviceOptions};
use rxo::worker::{Question, Readings};
use rxo::{Counters, Reading};
use rxo_coalesce::Policy;
use rxo_demo::machine::Cores;
use rxo_demo::running::Running;
use rxo_peers::{Folder, Guest, GuestImage, Processor};
use rxo_testbed::{Lab, LabOptions, Namespace};

use super::domain::{Treatment, switching};
use super::{TIMEOUT, boot};
use crate::card;

/// A guest behind a card. Fields nearer to the wire are dropped later.
pub(crate) struct Machine {
    guest: Guest,
    /// The driver domain; `None` if the guest owns the card.
    domain: Option<Running<Readings>>,
    /// The desk at which the driver domain answers requests.
    desk: Desk<Question>,
    _card: Running<Reading>,
    lab: Lab,
    _folder: Folder,
}

impl Machine {
    /// Starts the machine, with a guest whose instructions are not counted. Without a treatment there is no
    /// driver domain.
    pub(crate) fn start(image: &GuestImage, treatment: Option<Treatment>) -> Result<Self> {
        let (cores, folder) = (Cores::choose(), Folder::new("xen")?);
        let lab =
            Lab::through_with(LabOptions { peer_core: cores.sender, ..LabOptions::default() })?;
        let card_socket = folder.file("card.sock");
        let card = card::start(&lab, (card_socket.clone(), Duration::ZERO), cores.sender)?;
        let desk = Desk::new();
        let (domain, socket) = match treatment {
            None => (None, card_socket),
            Some(treatment) => {
                let (nic, socket) = (ring_of(&card_socket), folder.guest(0));
                let guests = std::slice::from_ref(&socket);
                let answering = (treatment, Some(desk.clone()));
                let domain = switching(&lab, answering, nic, (guests, cores.receiver))?;
                (Some(domain), socket)
            }
        };
        let guest = boot_on(cores.receiver, image, &socket)?;
        Ok(Self { guest, domain, desk, _card: card, lab, _folder: folder })
    }

    /// Returns the guest, and the sender's namespace.
    pub(crate) fn ends(&mut self) -> (&mut Guest, &Namespace) {
        (&mut self.guest, self.lab.peer())
    }

    /// Changes the driver domain's policy.
    pub(crate) fn follow(&self, policy: Policy) -> Result<()> {
        let changed = self.ask(|reply| Question::ChangePolicy(policy, reply))?;
        changed.map(drop).map_err(|misfit| anyhow!("{misfit}"))
    }

    /// Returns the engine's counters of the driver domain.
    pub(crate) fn engine(&self) -> Result<Counters> {
        let mut readings = self.ask(Question::Counters)?;
        Ok(readings.guests.pop().context("rxo says nothing of its guest")?.engine)
    }

    fn ask<A>(&self, question: impl FnOnce(Reply<A>) -> Question) -> Result<A> {
        self.desk.ask(question, || {}, TIMEOUT).context("the driver domain does not answer")
    }

    /// Stops the machine. Returns the engine's counters of the driver domain; `None` without
    /// one.
    pub(crate) fn finish(self) -> Result<Option<Counters>> {
        let Self { guest, domain, .. } = self;
        drop(guest);
        let Some(domain) = domain else { return Ok(None) };
        let mut totals = domain.finish()?;
        Ok(Some(totals.guests.pop().context("rxo says nothing of its guest")?.engine))
    }
}

/// Returns a function that opens the host's side of a card's ring.
fn ring_of(card: &Path) -> impl FnOnce() -> Result<Device> + Send + 'static {
    let name = format!("virtio:{}", card.display());
    move || Ok(Device::open(&name.parse()?, DeviceOptions::default())?)
}

/// Boots a guest on `core`: a process inherits the core of the thread that starts it.
fn boot_on(core: Option<usize>, image: &GuestImage, socket: &Path) -> Result<Guest> {
    thread::scope(|scope| {
        let booting = scope.spawn(|| {
            core.map_or(Ok(()), rxo_testbed::pin_to_core)?;
            boot(image, Processor::Emulated, socket, 0)
        });
        booting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
