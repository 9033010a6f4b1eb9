//! The floor of the path through rxo: a bare loop that copies frames from the ring to the TAP.
//!
//! One write contains up to 20 full segments of a flow; longer writes would not be faster. The loop does not
//! verify or hold frames, and works only for the demo's own traffic (TCP over IPv4, no VLAN, no IP options).
//! Its system calls, pauses and copies are those of rxo, so the additional cost of rxo is the cost of its
//! engine and its worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use rxo::live::{Device, DeviceOptions};
use rxo_device::{FrameSink, FrameSource, Pause};
use rxo_driver::DeviceBuf;
use rxo_driver::wait::{self, Interest, WaitList};
use rxo_frame::{ChecksumStatus, Frame, Gather, Gso, GsoKind, Offload, VlanTag};
use rxo_testbed::Lab;

use crate::running::{Running, wire};
use crate::through::TAP;

/// The totals of the bare loop, which copies frames from the ring to the TAP without rxo.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) frames: u64,
    pub(super) writes: u64,
    /// The number of frames that were lost because the ring was full.
    pub(super) ring_drops: u64,
}

/// Starts the loop between the lab's wire and a TAP, and gives the TAP the host's address.
///
/// # Errors
/// If a device cannot be opened.
pub(super) fn start(lab: &Lab, core: Option<usize>) -> Result<Running<Totals>> {
    let floor = Running::start(lab, ("floor", core), |stop, ready| {
        let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
        let (mut nic, mut host) =
            (wire(options)?, Device::open(&format!("tap:{TAP}").parse()?, options)?);
        ready();
        run(&mut nic, &mut host, stop)
    })?;
    lab.attach_host(TAP)?;
    Ok(floor)
}

fn run(nic: &mut Device, host: &mut Device, stop: &AtomicBool) -> Result<Totals> {
    wait::use_precise_timers();
    let (mut frames, mut totals, pause) = (Vec::new(), Totals::default(), Pause::default());
    while !stop.load(Ordering::Relaxed) {
        let back = host.source.receive(&mut frames, BATCH_FRAMES)?;
        nic.sink.transmit(frames.iter().map(Frame::borrowed))?;
        frames.clear();
        let there = nic.source.receive(&mut frames, BATCH_FRAMES)?;
        let trains = trains_of(&frames);
        host.sink.transmit(trains.iter())?;
        totals.frames += there as u64;
        totals.writes += trains.len() as u64;
        drop(trains);
        frames.clear();
        if back + there == 0 {
            let mut list = WaitList::new();
            list.add(Some(&nic.source), Interest::Readable);
            list.add(Some(&host.source), Interest::Readable);
            list.wait(Some(CHECK_INTERVAL))?;
        } else if let Some(time) = pause.after(there) {
            wait::pause(time);
        }
    }
    totals.ring_drops = nic.source.counters().ring_drops;
    Ok(totals)
}

/// A train: successive full segments of a flow, which are written at once, or one frame of any kind.
struct Train<'a> {
    /// The headers of the first segment, changed for the whole train.
    headers: [u8; HEADER_BYTES],
    frames: Vec<&'a Frame<DeviceBuf>>,
}

/// Returns the trains of a batch, in the order of their first frames.
fn trains_of(frames: &[Frame<DeviceBuf>]) -> Vec<Train<'_>> {
    // The train of each flow, by its ports; a collision only makes trains shorter.
    let mut last = [usize::MAX; 256];
    let mut trains: Vec<Train<'_>> = Vec::with_capacity(frames.len());
    for frame in frames {
        let bytes = frame.bytes();
        let place = if bytes.len() < HEADER_BYTES { 0 } else { bytes[35] ^ bytes[37] };
        let last = &mut last[usize::from(place)];
        if !trains.get_mut(*last).is_some_and(|train| train.append(frame)) {
            *last = trains.len();
            trains.push(Train { headers: [0; HEADER_BYTES], frames: vec![frame] });
        }
    }
    trains.iter_mut().for_each(Train::end);
    trains
}

impl<'a> Train<'a> {
    /// Appends `frame` if it is the next full segment of the same flow, and the train has space for it. Returns
    /// `true` if the frame was appended.
    fn append(&mut self, frame: &'a Frame<DeviceBuf>) -> bool {
        let (first, next) = (self.frames[0].bytes(), frame.bytes());
        let is_full = first.len() == FULL_BYTES && next.len() == FULL_BYTES;
        // Addresses and ports, the length of the TCP header, and the flags without PSH.
        let is_alike = || {
            first[26..38] == next[26..38] && first[46] == next[46] && next[47] | 8 == first[47] | 8
        };
        let payload = (self.frames.len() * (FULL_BYTES - HEADER_BYTES)) as u32;
        let is_next = is_full
            && self.frames.len() < MOST_FRAMES
            && is_alike()
            && number(first).wrapping_add(payload) == number(next);
        if is_next {
            self.frames.push(frame);
        }
        is_next
    }

    /// Completes the headers of a train of several segments: IP length, IP checksum and partial TCP checksum.
    fn end(&mut self) {
        if self.frames.len() < 2 {
            return;
        }
        self.headers.copy_from_slice(&self.frames[0].bytes()[..HEADER_BYTES]);
        let ip_bytes = (self.byte_len() - 14) as u16;
        self.headers[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        self.headers[24..26].fill(0);
        let checksum = !sum(&self.headers[14..34], 0);
        self.headers[24..26].copy_from_slice(&checksum.to_be_bytes());
        // The pseudo header; the kernel completes the sum.
        let pseudo = sum(&self.headers[26..34], 6 + u32::from(ip_bytes) - 20);
        self.headers[50..52].copy_from_slice(&pseudo.to_be_bytes());
    }
}

/// Returns the sequence number of a full segment.
fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]])
}

/// Returns the ones' complement sum of `start` and the 16-bit words of `bytes`.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let words = bytes.chunks_exact(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let total = words.sum::<u32>() + start;
    let folded = (total & 0xffff) + (total >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

impl<'a> Gather<'a> for &'a Train<'_> {
    fn offload(self) -> Offload {
        let first = self.frames[0];
        if self.frames.len() < 2 {
            return Offload { checksum: first.checksum, gso: first.gso, header_bytes: 0 };
        }
        Offload {
            checksum: ChecksumStatus::Partial { start: 34, offset: 16 },
            gso: Some(Gso::new(GsoKind::TcpV4, SEGMENT)),
            header_bytes: HEADER_BYTES as u16,
        }
    }

    fn vlan(self) -> Option<VlanTag> {
        self.frames[0].vlan
    }

    fn byte_len(self) -> usize {
        let rest = (self.frames.len() - 1) * (FULL_BYTES - HEADER_BYTES);
        self.frames[0].bytes().len() + rest
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        if self.frames.len() < 2 {
            return visit(self.frames[0].bytes());
        }
        visit(&self.headers);
        self.frames.iter().for_each(|frame| visit(&frame.bytes()[HEADER_BYTES..]));
    }

    fn frame_count(self) -> usize {
        self.frames.len()
    }

    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        self.frames.iter().map(|frame| frame.borrowed()).for_each(visit);
    }
}

/// The length of the Ethernet, IPv4 and TCP headers of a segment with timestamps, in bytes.
const HEADER_BYTES: usize = 66;
/// The length of a full frame in bytes, on a wire with an MTU of 1,500 bytes.
const FULL_BYTES: usize = 1_514;
const SEGMENT: std::num::NonZeroU16 = std::num::NonZeroU16::new(1_448).expect("not zero");
const MOST_FRAMES: usize = 20;
const BATCH_FRAMES: usize = 256;
/// Maximum time between two checks of the flag that stops the loop.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
