//! Card: a back end that makes a TAP of the far network the card of a virtual machine, whose guest is this process.
//!
//! The guest has the driver's side of the rings, and a TAP in the near network as its application: so Linux's TCP is at both
//! ends, and no virtual machine is needed. It coalesces nothing, and sends single packets, because the back end offers no
//! segmentation.

use std::iter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rxo::driver::wait::{Interest, WaitList};
use rxo::driver::{Device, DeviceOptions, SubmitMode, Tap, TapKind};
use rxo::io::PacketReader;
use rxo::{DeviceError, Frame, FrameSink, FrameSource, Instant};
use rxo_testbed::error::{Context, Result, failed};
use rxo_testbed::{Namespace, until};

use super::file;
use crate::folder::Folder;
use crate::process::Process;

#[derive(Debug)]
pub(super) struct Card {
    guest: Option<JoinHandle<Result<std::result::Result<(), DeviceError>>>>,
    stop: Arc<AtomicBool>,
    pub(super) process: Process,
    pub(super) near: Namespace,
    pub(super) far: Namespace,
    _folder: Folder,
}

/// The interface of the guest's network, and that of the host's.
const GUEST: &str = "guest0";
const HOST: &str = "card0";

/// The longest time after which the guest looks at its rings again. It does not ask them for notifications, so this is short.
const CHECK_INTERVAL: Duration = Duration::from_micros(200);

/// The number of frames that the guest takes at once.
const BUDGET: usize = 64;

impl Card {
    pub(super) const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 1));
    pub(super) const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 2));

    pub(super) fn start(programs: &Path) -> Result<Self> {
        let folder = Folder::new("card")?;
        let (near, far) = (Namespace::new("near")?, Namespace::new("far")?);
        let socket = folder.path().join("card.sock");
        let program = file(programs, "vhost-tap");
        let words = [program.clone(), socket.display().to_string(), HOST.to_owned()];
        let mut process = Process::start(&far, &words, &folder.path().join("out"))?;
        until(|| Ok(process.said().contains("serves") || !process.is_alive()))?
            .context(|| format!("{program} makes no interface"))?;
        process.check()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let ends = Arc::clone(&stop);
        let guest = near.spawn("guest", move || guest(socket, &ready, &ends))?;
        let is_open = is_ready.recv().is_ok();
        let card = Self { guest: Some(guest), stop, process, near, far, _folder: folder };
        if !is_open {
            return Err(card.fault());
        }
        for (namespace, name, address) in
            [(&card.near, GUEST, Self::NEAR), (&card.far, HOST, Self::FAR)]
        {
            let interface = namespace.interface(name);
            interface.add_address(address, 24)?;
            interface.up()?;
        }
        Ok(card)
    }

    /// Returns the reason for which the guest has ended.
    fn fault(mut self) -> rxo_testbed::LabError {
        match self.guest.take().map(JoinHandle::join) {
            Some(Ok(Ok(Err(error)))) => {
                failed(format!("the guest has no card: {error}: {}", self.process.said()))
            }
            Some(Ok(Err(error))) => error,
            _ => failed("the guest ended".to_owned()),
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(guest) = self.guest.take() {
            let _ended_either_way = guest.join();
        }
    }
}

/// Carries frames between the card and the guest's TAP until `stop` is set.
fn guest(
    socket: PathBuf,
    ready: &mpsc::Sender<()>,
    stop: &AtomicBool,
) -> std::result::Result<(), DeviceError> {
    let card = format!("virtio:{}", socket.display()).parse()?;
    let Device { source: mut from_card, sink: mut to_card } =
        Device::open(&card, DeviceOptions::default())?;
    let tap = Tap::open(GUEST, TapKind::Tap)?;
    let (mut from_tap, mut to_tap) =
        (PacketReader::new(tap.source()?), tap.sink(SubmitMode::Writev)?);
    let _nobody_waits = ready.send(());
    let (mut frames, mut packets) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let received = from_card.receive(&mut frames, BUDGET)?;
        to_tap.transmit(frames.iter().map(Frame::borrowed))?;
        frames.clear();
        let read = from_tap.read(BUDGET, |packet| packets.push(packet.to_vec()))?;
        for packet in packets.drain(..) {
            to_card.transmit(iter::once(Frame::new(&packet[..], Instant::ZERO)))?;
        }
        if received + read == 0 {
            let mut list = WaitList::new();
            list.add(Some(&*from_card), Interest::Readable);
            list.add(Some(from_tap.source()), Interest::Readable);
            list.wait(Some(CHECK_INTERVAL)).map_err(|source| DeviceError::System {
                message: "the guest cannot wait".to_owned(),
                source,
            })?;
        }
    }
    Ok(())
}
