//! The front end: what it sends, and what it writes into its memory.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rxo_device::Descriptors;
use rxo_driver::Bell;
use rxo_driver::vhost_user::features::{
    DEVICE_OFFERS, DEVICE_OFFERS_PROTOCOL, PROTOCOL_FEATURES, RING_PACKED, VERSION_1,
};
use rxo_driver::vhost_user::{
    Channel, Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};

use super::memory::{BYTES, memory, put};
use super::{Script, Stage};

/// Address of the memory in the process of the front end.
const USER: u64 = 1 << 40;
/// Entries of a ring, and the rings that are started.
const ENTRIES: u16 = 16;
const RINGS: u32 = 4;

/// Addresses of a buffer for a frame and of one with a frame, and the bytes before it.
const RECEIVED: u16 = 0x8000;
const SENT: u16 = 0x9000;
const HEADER_BYTES: u16 = 12;

pub(super) struct Front {
    socket: PathBuf,
    /// `None` if the device does not take it now.
    channel: Option<(Channel, UnixStream)>,
    memory: File,
    features: u64,
    /// How many buffers each ring has been given.
    given: [u16; RINGS as usize],
}

impl Front {
    /// Connects. `features` are the bits of those that it wants.
    pub(super) fn new(stage: &Stage, features: u16) -> Self {
        let mut front = Self {
            socket: stage.socket(),
            channel: None,
            memory: memory(&stage.label),
            features: wanted(features),
            given: [0; RINGS as usize],
        };
        front.connect();
        front
    }

    pub(super) fn memory(&self) -> File {
        duplicate(&self.memory)
    }

    /// Does the next step; `None` at the end of the script.
    pub(super) fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.next()? % 12 {
            0 | 1 => self.start(),
            2 | 3 => self.post(script),
            4 => put(&self.memory, u64::from(script.word()), script.bytes()),
            5 => {
                let ring = u64::from(script.byte()) % u64::from(RINGS);
                put(&self.memory, part(ring, 0) + u64::from(script.byte()), script.bytes());
            }
            6 => _ = self.memory.set_len(u64::from(script.byte()) << 10),
            7 => _ = self.memory.set_len(BYTES),
            8 => self.connect(),
            9 => self.say(script.bytes()),
            10 => self.listen(),
            _ => {
                let request = self.request(script);
                self.send(&request);
            }
        }
        Some(())
    }

    /// Leaves, and comes back.
    fn connect(&mut self) {
        self.channel = None;
        let stream = UnixStream::connect(&self.socket).ok();
        self.channel = stream.and_then(|stream| {
            let raw = stream.try_clone().ok()?;
            Some((Channel::new(stream).ok()?, raw))
        });
    }

    fn send<F: AsFd>(&mut self, request: &Request<F>) {
        if let Some((channel, _)) = &mut self.channel {
            _ = channel.request(request, false);
        }
    }

    /// Says any bytes, perhaps in the middle of a message.
    fn say(&self, bytes: &[u8]) {
        if let Some((_, raw)) = &self.channel {
            _ = (&*raw).write(bytes);
        }
    }

    /// Takes the replies out of its socket.
    fn listen(&self) {
        if let Some((_, raw)) = &self.channel {
            let mut bytes = [0; 512];
            while std::io::Read::read(&mut &*raw, &mut bytes).is_ok_and(|count| count > 0) {}
        }
    }

    /// All that starts the rings.
    fn start(&mut self) {
        self.given = [0; RINGS as usize];
        put(&self.memory, 0, &[0; 0x4000]);
        self.send(&Request::<OwnedFd>::SetOwner);
        self.send(&Request::<OwnedFd>::SetFeatures(self.features));
        self.send(&self.table(&[whole()]));
        for ring in 0..RINGS {
            self.send(&Request::<OwnedFd>::SetRingSize(RingNumber {
                ring,
                number: ENTRIES.into(),
            }));
            self.send(&Request::<OwnedFd>::SetRingBase(RingNumber { ring, number: self.base() }));
            self.send(&addresses(ring, 0));
            self.send(&Request::SetRingCall(RingDescriptor { ring, file: Some(eventfd()) }));
            self.send(&Request::SetRingKick(RingDescriptor { ring, file: Some(eventfd()) }));
            if self.features & PROTOCOL_FEATURES != 0 {
                self.send(&Request::<OwnedFd>::SetRingEnable(RingNumber { ring, number: 1 }));
            }
        }
    }

    /// Where a ring begins: a packed one has its wrap counter in bit 15.
    const fn base(&self) -> u32 {
        if self.is_packed() { 1 << 15 } else { 0 }
    }

    const fn is_packed(&self) -> bool {
        self.features & RING_PACKED != 0
    }

    fn table(&self, regions: &[Region]) -> Request {
        let shared = |region: &Region| SharedRegion {
            region: *region,
            file: duplicate(&self.memory).into(),
        };
        Request::SetMemTable(regions.iter().map(shared).collect())
    }

    /// Connects again, and gives the device a frame and a buffer for one.
    pub(super) fn exchange(&mut self, frame: &[u8]) {
        self.connect();
        self.start();
        put(&self.memory, RECEIVED.into(), &[0; 2_048]);
        put(&self.memory, (SENT + HEADER_BYTES).into(), frame);
        self.give(0, [RECEIVED, 2_048], [2, 0]);
        self.give(1, [SENT, HEADER_BYTES + frame.len() as u16], [0, 0]);
    }

    /// Whether the buffer has this frame.
    pub(super) fn has_received(&self, frame: &[u8]) -> bool {
        let mut bytes = vec![0; frame.len()];
        let at = u64::from(RECEIVED + HEADER_BYTES);
        self.memory.read_exact_at(&mut bytes, at).is_ok() && bytes == frame
    }

    /// Gives a ring a buffer as the script says.
    fn post(&mut self, script: &mut Script<'_>) {
        let (ring, flags) = (u32::from(script.byte()) % RINGS, script.byte());
        let (at, bytes, next) = (0x8000 | script.word(), script.word(), script.byte());
        put(&self.memory, at.into(), script.bytes());
        self.give(ring, [at, bytes], [flags, next]);
    }

    /// Gives a ring a buffer.
    fn give(&mut self, ring: u32, [at, bytes]: [u16; 2], [flags, next]: [u8; 2]) {
        let n = self.given[ring as usize];
        self.given[ring as usize] = n.wrapping_add(1);
        let entry = part(ring.into(), 0) + 16 * u64::from(n % ENTRIES);
        let head = [&u64::from(at).to_le_bytes()[..], &u32::from(bytes).to_le_bytes()].concat();
        let flags = u16::from(flags % 8);
        if self.is_packed() {
            // Available: the flag is equal to the wrap counter, and that of used is not.
            let marks = if (n / ENTRIES).is_multiple_of(2) { 1 << 7 } else { 1 << 15 };
            put(&self.memory, entry, &[head, (n % ENTRIES).to_le_bytes().to_vec()].concat());
            put(&self.memory, entry + 14, &(flags | marks).to_le_bytes());
        } else {
            let tail = [flags.to_le_bytes(), u16::from(next % 16).to_le_bytes()].concat();
            put(&self.memory, entry, &[head, tail].concat());
            let available = part(ring.into(), 1);
            put(
                &self.memory,
                available + 4 + 2 * u64::from(n % ENTRIES),
                &(n % ENTRIES).to_le_bytes(),
            );
            put(&self.memory, available + 2, &n.wrapping_add(1).to_le_bytes());
        }
    }

    /// A single request, mostly a valid one.
    fn request(&self, script: &mut Script<'_>) -> Request {
        let (kind, ring, number) =
            (script.byte(), u32::from(script.byte()) % (RINGS + 1), script.word());
        let of_ring = RingNumber { ring, number: number.into() };
        let region = self.region(number, script.byte());
        let shared = || SharedRegion { region, file: duplicate(&self.memory).into() };
        match kind % 18 {
            0 => Request::SetFeatures(wanted(number)),
            1 => Request::SetRingSize(of_ring),
            2 => Request::SetRingBase(of_ring),
            3 => Request::GetRingBase(ring),
            4 => Request::SetRingEnable(of_ring),
            5 => addresses(ring, number.into()),
            6 => Request::SetRingKick(RingDescriptor { ring, file: any_file(number) }),
            7 => Request::SetRingCall(RingDescriptor { ring, file: any_file(number) }),
            8 => self.table(&[region]),
            9 => self.table(&[whole(), region]),
            10 => Request::AddMemRegion(shared()),
            11 => Request::RemoveMemRegion(region),
            12 => Request::ResetDevice,
            13 => Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL),
            14 => Request::SetStatus(number.into()),
            15 => Request::SetMtu(number.into()),
            16 => Request::ResetOwner,
            _ => Request::GetFeatures,
        }
    }

    /// A part of the memory, which may be beyond the file, or all of it.
    fn region(&self, number: u16, pages: u8) -> Region {
        let (at, bytes) = (u64::from(number) << 10 & !0xfff, u64::from(pages % 20) << 12);
        match bytes {
            0 => whole(),
            _ => Region { guest_address: at, bytes, user_address: USER + at, file_offset: at },
        }
    }
}

const fn whole() -> Region {
    Region { guest_address: 0, bytes: BYTES, user_address: USER, file_offset: 0 }
}

/// Features by 16 bits, always with those without which nothing works.
fn wanted(bits: u16) -> u64 {
    let mut offered = DEVICE_OFFERS;
    let mut wanted = VERSION_1;
    for n in 0..16 {
        let lowest = offered & offered.wrapping_neg();
        offered ^= lowest;
        wanted |= if bits >> n & 1 == 1 { lowest } else { 0 };
    }
    // The layout of rings is the highest of all that matter, so it has a bit of its own.
    wanted | if bits >> 15 == 1 { RING_PACKED } else { 0 }
}

/// Address of a part of a ring: 0 for its descriptors, 1 for the driver's area, 2 for the device's.
const fn part(ring: u64, part: u64) -> u64 {
    ring * 0x1000 + part * 0x400
}

/// The addresses of a ring; those of its descriptors are `off` bytes further.
fn addresses(ring: u32, off: u64) -> Request {
    let [descriptors, driver, device] = [0, 1, 2].map(|n| USER + part(ring.into(), n));
    let descriptors = descriptors + off;
    Request::SetRingAddresses(RingAddresses { ring, flags: 0, descriptors, device, driver, log: 0 })
}

/// An eventfd, a file of another kind, or none.
fn any_file(number: u16) -> Option<OwnedFd> {
    match number % 4 {
        0 => None,
        1 => File::open("/dev/null").ok().map(Into::into),
        _ => Some(eventfd()),
    }
}

fn eventfd() -> OwnedFd {
    let (bell, mut file) = (Bell::new().expect("an eventfd"), None);
    bell.visit_descriptors(&mut |fd| file = fd.try_clone_to_owned().ok());
    file.expect("its descriptor")
}

fn duplicate(file: &File) -> File {
    file.try_clone().expect("a duplicate")
}
