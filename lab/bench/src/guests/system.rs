//! A driver domain with its network and its guest, through which bytes are sent.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo_peers::{Folder, Guest, GuestImage, GuestOptions, Processor};
use rxo_testbed::Lab;

use super::domain::{Domain, Running};
use crate::process::processor_time;

/// Timeout, longer than any machine needs.
const TIMEOUT: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(20);
/// Time without traffic after which the wire counts as idle.
const QUIET: Duration = Duration::from_millis(300);
const PORT: u16 = 5_000;
/// Name of the QEMU thread that runs the guest's processor.
pub(crate) const GUEST_PROCESSOR: &str = "CPU 0/TCG";

/// Resources used and packets moved during a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) bytes: usize,
    /// Frames sent by the peer.
    pub(super) frames: u64,
    /// Packets that the guest's kernel received from its card.
    pub(super) packets: u64,
    pub(super) instructions: u64,
    /// Processor time of the driver domain.
    pub(super) domain: Duration,
    /// Processor time of QEMU, without the thread of the guest's processor.
    pub(super) emulator: Duration,
}

/// A running system. Dropping this ends it and removes its folder.
pub(super) struct System {
    domain: Domain,
    stream: Option<TcpStream>,
    guest: Guest,
    running: Running,
    lab: Lab,
    folder: Folder,
}

impl System {
    /// Boots the guest behind the domain, and connects a sender to a receiver in it.
    pub(super) fn start(image: &GuestImage, rxo: &Path, domain: Domain) -> Result<Self> {
        let (lab, folder) = (Lab::through()?, Folder::new("bench-guests")?);
        let socket = folder.guest(0);
        let running = domain.start(&lab, rxo, &socket)?;
        let address = (Lab::HOST_ADDRESSES.0, 24);
        let options = GuestOptions {
            net: domain.net(&socket),
            address,
            number: 2,
            processor: Processor::Counted,
        };
        let mut guest = lab.host().run(|| Guest::boot(image, &options))??;
        domain.attach(&lab)?;
        guest.set_coalescing(domain.guest_gro())?;
        Ok(Self { domain, stream: None, guest, running, lab, folder })
    }

    /// Moves the peer's receive processing to a separate thread. Otherwise the kernel runs the peer's TCP,
    /// which sends the next frames, inside the system call with which rxo forwards an ACK; that was 45 % of
    /// rxo's processor time.
    pub(super) fn separate_peer(&self) -> Result<()> {
        self.lab.peer().interface(Lab::PEER_INTERFACE).receive_in_thread()?;
        Ok(())
    }

    pub(super) fn name(&self) -> String {
        self.domain.name()
    }

    pub(super) fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// Ends rxo and starts it again as `domain`, while the guest keeps running and its front end reconnects.
    /// Returns the last JSON of the ended rxo.
    pub(super) fn exchange(&mut self, rxo: &Path, domain: Domain) -> Result<String> {
        let said = self.running.end()?;
        self.running = domain.start(&self.lab, rxo, &self.folder.guest(0))?;
        self.domain = domain;
        Ok(said)
    }

    /// Connects from the peer, and retries until the guest listens.
    pub(super) fn connect(&self, port: u16) -> Result<TcpStream> {
        let address = SocketAddr::from((Lab::HOST_ADDRESSES.0, port));
        let deadline = Instant::now() + TIMEOUT;
        self.lab.peer().run(|| {
            loop {
                match TcpStream::connect_timeout(&address, TIMEOUT) {
                    Ok(stream) => return Ok(stream),
                    Err(error) if Instant::now() > deadline => bail!("cannot connect: {error}"),
                    Err(_) => thread::sleep(SHORT),
                }
            }
        })?
    }

    /// Sends `bytes` bytes to the guest, and waits until it has received them.
    pub(super) fn measure(&mut self, bytes: usize) -> Result<Span> {
        self.running.set_awake(true);
        if self.stream.is_none() {
            // dd reads as much at once as it can, like a server; nc would read a kilobyte.
            let sink = format!("(nc -l -p {PORT} -e dd of=/dev/null bs=64k 2>/dev/null &)");
            self.guest.run(&sink, TIMEOUT)?;
            self.stream = Some(self.connect(PORT)?);
        }
        let packets = self.guest.received_packets()?;
        let (frames, used) = (self.wait_until_idle()?, self.used()?);
        let instructions = self.guest.instructions()?;
        let Some(stream) = &mut self.stream else { bail!("nothing is connected") };
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.write_all(&vec![0; bytes]).context("cannot send to the guest")?;
        let frames = self.wait_until_idle()? - frames;
        let instructions = self.guest.instructions()? - instructions;
        let after = self.used()?;
        let packets = self.guest.received_packets()? - packets;
        self.running.set_awake(false);
        if (frames as usize) < bytes / 1_500 {
            bail!("{frames} frames for {bytes} bytes: the peer's card segments");
        }
        let (domain, emulator) = (after.0 - used.0, after.1 - used.1);
        Ok(Span { bytes, frames, packets, instructions, domain, emulator })
    }

    /// Waits until the wire is idle. Returns the number of frames that the peer has sent.
    fn wait_until_idle(&self) -> Result<u64> {
        let wire = self.lab.peer().interface(Lab::PEER_INTERFACE);
        let deadline = Instant::now() + TIMEOUT;
        let mut last = wire.counters()?;
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            thread::sleep(SHORT);
            let now = wire.counters()?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if Instant::now() > deadline {
                bail!("the wire did not become quiet in {TIMEOUT:?}");
            }
        }
        Ok(last.sent_frames)
    }

    /// Returns the processor times of the domain, and of QEMU without the guest's processor.
    fn used(&self) -> Result<(Duration, Duration)> {
        let domain =
            self.running.processes().into_iter().map(|process| processor_time(process, None)).sum();
        let emulator = processor_time(self.guest.process_id(), Some(GUEST_PROCESSOR));
        Ok((domain, emulator))
    }
}
