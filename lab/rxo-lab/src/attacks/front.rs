//! A vhost-user front end that follows only the rules that its attack needs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, fallocate, fcntl_setfl, memfd_create};
use rxo_device::Descriptors;
use rxo_driver::Bell;
use rxo_driver::vhost_user::features::VERSION_1;
use rxo_driver::vhost_user::{
    Channel, Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};

/// Address of the front end's memory in its process.
const USER: u64 = 1 << 40;
/// Size of the memory, and the address of the frame in it.
const BYTES: u64 = 1 << 20;
const FRAME: u64 = 0xe_0000;
/// Addresses of the parts of a ring: descriptors, the driver's area, the device's area.
const PARTS: [u64; 3] = [0, 0x1_8000, 0x2_0000];
const RING_BYTES: u64 = 0x3_0000;

pub(super) struct Front {
    channel: Channel,
    memory: File,
    /// The eventfd by which the device notifies the front end of packets and of frames that it has taken.
    call: File,
    /// The eventfd by which the front end notifies the device of frames.
    kick: File,
}

/// Equal frames for a flood.
pub(super) struct Frames<'f> {
    /// The bytes of each frame, with its virtio header.
    pub(super) bytes: &'f [u8],
    /// Entries of the ring; the next field is the number of entries of a frame.
    pub(super) entries: u16,
    pub(super) chain: u16,
}

impl Front {
    /// Connects, and starts both rings. The device may use the first at once.
    pub(super) fn start(path: &Path, features: u64, entries: u16) -> Result<Self> {
        let channel = Channel::new(UnixStream::connect(path)?)?;
        let (memory, call, kick) = (allocated(BYTES)?, eventfd()?, eventfd()?);
        let mut front = Self { channel, memory, call, kick };
        front.post_buffers(entries)?;
        front.send(&Request::<OwnedFd>::SetOwner)?;
        front.features(features)?;
        front.share()?;
        for ring in 0..2 {
            let part = |n: usize| USER + u64::from(ring) * RING_BYTES + PARTS[n];
            front.send(&Request::<OwnedFd>::SetRingSize(RingNumber {
                ring,
                number: entries.into(),
            }))?;
            let [descriptors, driver, device] = [part(0), part(1), part(2)];
            let addresses = RingAddresses { ring, flags: 0, descriptors, device, driver, log: 0 };
            front.send(&Request::<OwnedFd>::SetRingAddresses(addresses))?;
            let call = Some(front.call.try_clone()?);
            front.send(&Request::SetRingCall(RingDescriptor { ring, file: call }))?;
            let kick = if ring == 1 { front.kick.try_clone()? } else { eventfd()? };
            front.send(&Request::SetRingKick(RingDescriptor { ring, file: Some(kick) }))?;
        }
        Ok(front)
    }

    pub(super) fn features(&mut self, features: u64) -> Result<()> {
        self.send(&Request::<OwnedFd>::SetFeatures(features | VERSION_1))
    }

    /// Shares the memory with the device; also if the device has it already.
    pub(super) fn share(&mut self) -> Result<()> {
        let region = Region { guest_address: 0, bytes: BYTES, user_address: USER, file_offset: 0 };
        let file = self.memory.try_clone()?;
        self.send(&Request::SetMemTable(vec![SharedRegion { region, file }]))
    }

    /// Blocks each thread that notifies the front end from now on.
    pub(super) fn block(&self) -> Result<()> {
        // The device has notified it once its ring is ready.
        while (&self.call).read(&mut [0; 8]).is_err() {
            thread::yield_now();
        }
        let mut more = u64::MAX - 1;
        while more > 0 {
            if (&self.call).write(&more.to_ne_bytes()).is_err() {
                more /= 2;
            }
        }
        fcntl_setfl(&self.call, OFlags::RDWR).context("an eventfd has flags")
    }

    /// Sends the same frame again and again.
    pub(super) fn flood(&self, frames: &Frames<'_>, stop: &AtomicBool) -> Result<()> {
        let Frames { bytes, entries, chain } = *frames;
        self.put(FRAME, bytes)?;
        let part = bytes.len() / usize::from(chain);
        for n in 0..entries {
            let (place, is_last) = (n % chain, n % chain == chain - 1);
            let at = FRAME + (usize::from(place) * part) as u64;
            self.entry(1, n, at, part as u32, if is_last { 0 } else { 1 })?;
        }
        let heads = entries / chain;
        for n in 0..entries {
            let head = n % heads * chain;
            self.put(RING_BYTES + PARTS[1] + 4 + 2 * u64::from(n), &head.to_le_bytes())?;
        }
        while !stop.load(Ordering::Relaxed) {
            let mut used = [0; 2];
            self.memory.read_exact_at(&mut used, RING_BYTES + PARTS[2] + 2)?;
            // The ring is always full of the same frames, however many the device has taken.
            let given = u16::from_le_bytes(used).wrapping_add(entries);
            self.put(RING_BYTES + PARTS[1] + 2, &given.to_le_bytes())?;
            (&self.kick).write_all(&1_u64.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Gives the first ring buffers for packets.
    fn post_buffers(&self, entries: u16) -> Result<()> {
        for n in 0..entries {
            // Written by the device.
            self.entry(0, n, FRAME + 0x1_0000, 2_048, 2)?;
            self.put(PARTS[1] + 4 + 2 * u64::from(n), &n.to_le_bytes())?;
        }
        self.put(PARTS[1] + 2, &entries.to_le_bytes())
    }

    fn entry(&self, ring: u64, n: u16, at: u64, bytes: u32, flags: u16) -> Result<()> {
        let next = n.wrapping_add(1);
        let tail = [flags.to_le_bytes(), next.to_le_bytes()].concat();
        let entry = [&at.to_le_bytes()[..], &bytes.to_le_bytes(), &tail].concat();
        self.put(ring * RING_BYTES + PARTS[0] + 16 * u64::from(n), &entry)
    }

    fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.memory.write_all_at(bytes, at)?)
    }

    fn send<F: std::os::fd::AsFd>(&mut self, request: &Request<F>) -> Result<()> {
        loop {
            match self.channel.request(request, false) {
                // The device has much to read.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => thread::yield_now(),
                done => return Ok(done?),
            }
        }
    }
}

/// Makes a file in memory whose pages are all allocated.
pub(super) fn allocated(bytes: u64) -> Result<File> {
    let memory = memfd_create("attacker", MemfdFlags::CLOEXEC)?;
    fallocate(&memory, FallocateFlags::empty(), 0, bytes)?;
    Ok(memory.into())
}

fn eventfd() -> Result<File> {
    let (bell, mut file) = (Bell::new()?, None);
    bell.visit_descriptors(&mut |fd| file = fd.try_clone_to_owned().ok());
    Ok(file.context("a bell has a descriptor")?.into())
}
