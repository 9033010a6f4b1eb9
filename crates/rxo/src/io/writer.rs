//! Writer: coalesces single packets, and passes the aggregates to a sink.

use std::iter;
use std::mem;

use rxo_coalesce::{Config, Deliveries, Engine, Hold, Policy};
use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Frame, Instant, Pool, PoolBuf};

use crate::worker::{Misfit, carried};

/// The number of bytes of a buffer beyond the MTU. A cipher writes its padding and its authentication tag
/// there.
const SPARE_BYTES: usize = 64;

/// The number of packets that the engine receives at a time. Complete aggregates leave after each part, while
/// their bytes are still in the cache; other aggregates grow until the flush. With one part of 1,024 packets
/// instead, processing one flow took nearly twice the time (`cargo xtask bench tun`).
const PART: usize = 64;

/// Coalesces single packets, and passes the aggregates to a sink.
///
/// Packets are held until [`flush`](Self::flush) or until the batch is full, never longer. A program should
/// therefore flush when its socket has no more datagrams. Complete aggregates leave before that, while their
/// bytes are in the cache. The policy is [`Policy::linux_gro`]. UDP datagrams and tunnelled packets are
/// coalesced only if the sink can segment them. A sink that cannot segment gets single packets. Checksums are
/// verified before packets are merged.
///
/// The writer allocates its memory at construction: about 110 KiB for the engine, and `batch` buffers of the
/// sink's MTU.
#[derive(Debug)]
pub struct PacketWriter<S> {
    /// The number of buffers.
    batch: usize,
    engine: Engine<PoolBuf>,
    pool: Pool,
    /// The packets that were not passed to the engine yet, at most [`PART`].
    part: Vec<Frame<PoolBuf>>,
    sink: S,
    /// The first error of the sink since the last flush; `Ok` if there was none.
    sent: Result<(), DeviceError>,
}

impl<S: FrameSink> PacketWriter<S> {
    /// Creates a writer that holds at most `batch` packets, 1 to 32,768.
    ///
    /// # Errors
    /// If `batch` is out of its range.
    pub fn new(sink: S, batch: usize) -> Result<Self, DeviceError> {
        Self::with_policy(sink, batch, Policy::linux_gro())
    }

    /// Creates a writer as [`new`](Self::new) does, but with the caller's `policy`. The policy's rule for
    /// holding packets is ignored: no packet is held beyond a flush. [`Policy::none`] writes packets one by
    /// one.
    ///
    /// # Errors
    /// If `batch` is out of its range, or the sink cannot carry the policy. A sink that cannot segment is no error.
    pub fn with_policy(sink: S, batch: usize, policy: Policy) -> Result<Self, DeviceError> {
        let takes = sink.capabilities();
        let policy = match carried(policy, takes) {
            Err(Misfit::NoSegmentation { .. }) => Policy::none(),
            carried => carried.map_err(|misfit| DeviceError::Usage(misfit.to_string()))?,
        };
        // A writer has no clock, so it cannot hold a packet beyond a flush.
        let policy = Policy { hold: Hold::EndOfPoll, ..policy };
        let config = Config {
            link: takes.link,
            batch_frames: batch,
            ..Config::new(policy, crate::random_seed())
        };
        let engine = Engine::new(config).map_err(|error| DeviceError::Usage(error.to_string()))?;
        let pool = pool(batch, takes.mtu);
        Ok(Self { batch, engine, pool, part: Vec::with_capacity(PART), sink, sent: Ok(()) })
    }

    /// Returns a buffer for one packet, with 64 bytes more than the sink's MTU. If no buffer is free, passes
    /// the held packets to the sink first. Write a packet to the buffer, truncate it, and [`push`](Self::push)
    /// it.
    ///
    /// # Errors
    /// If the device was removed, or the caller itself holds all buffers.
    pub fn buffer(&mut self) -> Result<PoolBuf, DeviceError> {
        if self.pool.is_exhausted() {
            self.flush()?;
        }
        self.pool.take().ok_or_else(|| {
            let message = "all buffers of a PacketWriter are held; push or drop some";
            DeviceError::Usage(message.to_owned())
        })
    }

    /// Returns the pool of buffers from which [`buffer`](Self::buffer) takes. Other threads can take buffers
    /// from a clone of the pool. A packet in such a buffer may be [pushed](Self::push).
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Makes new buffers for packets of at most `mtu` bytes, for a sink whose MTU has changed. Buffers that are
    /// held stay valid. Allocates.
    pub fn set_mtu(&mut self, mtu: u32) {
        self.pool = pool(self.batch, mtu);
    }

    /// Adds a packet. An error of the sink is returned by the next flush.
    pub fn push(&mut self, packet: PoolBuf) {
        self.part.push(Frame::new(packet, Instant::ZERO));
        if self.part.len() == PART {
            let Self { engine, part, sink, sent, .. } = self;
            engine.push(part, Instant::ZERO, pass_to(sink, sent));
        }
    }

    /// Adds a copy of `packet`. A packet that is longer than a buffer is passed to the sink at once, after the
    /// held packets.
    ///
    /// # Errors
    /// Returns the errors of [`buffer`](Self::buffer), and those of the sink.
    pub fn write(&mut self, packet: &[u8]) -> Result<(), DeviceError> {
        if packet.len() > self.pool.bytes_each() {
            self.flush()?;
            return self.sink.transmit(iter::once(Frame::new(packet, Instant::ZERO)));
        }
        let mut buffer = self.buffer()?;
        buffer.set_len(packet.len());
        buffer.copy_from_slice(packet);
        self.push(buffer);
        Ok(())
    }

    /// Coalesces the held packets, and passes them to the sink. A full sink keeps them;
    /// [`FrameSink::is_blocked`] then returns `true`.
    ///
    /// # Errors
    /// If the device was removed. Returns the first error since the last flush, because a batch may be passed
    /// in several parts.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        let Self { engine, part, sink, sent, .. } = self;
        engine.poll(part, Instant::ZERO, pass_to(sink, sent));
        mem::replace(sent, Ok(()))
    }

    /// Returns the sink.
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the sink, for example to resume it.
    pub const fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }
}

fn pool(batch: usize, mtu: u32) -> Pool {
    Pool::new(batch, mtu as usize + SPARE_BYTES)
}

/// Returns the function that passes deliveries to `sink` and keeps the first error in `sent`.
fn pass_to<'s, S: FrameSink>(
    sink: &'s mut S,
    sent: &'s mut Result<(), DeviceError>,
) -> impl FnMut(Deliveries<'_, PoolBuf>) + use<'s, S> {
    |deliveries| {
        let done = sink.transmit(deliveries.iter());
        *sent = mem::replace(sent, Ok(())).and(done);
    }
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::UdpRule;
    use rxo_device::{MemoryLink, MemoryOptions};
    use rxo_frame::LinkKind;
    use rxo_testkit::seg;

    use super::*;

    fn tun() -> MemoryLink {
        MemoryLink::new(MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() })
    }

    fn packet(index: u32) -> Vec<u8> {
        seg().raw_ip().seq(1 + index * 1_000).len(1_000).bytes()
    }

    #[test]
    fn what_is_written_leaves_at_the_flush_or_when_the_batch_is_full() {
        let tun = tun();
        let mut writer = PacketWriter::new(tun.sink(), 16).unwrap();
        (0..20).for_each(|index| writer.write(&packet(index)).unwrap());
        assert_eq!(tun.take_all().iter().map(|write| write.frames).collect::<Vec<_>>(), [16]);
        writer.flush().unwrap();
        assert_eq!(tun.take_all().iter().map(|write| write.frames).collect::<Vec<_>>(), [4]);
    }

    /// A poll given to the engine in parts stays one poll: between parts only complete aggregates are flushed.
    #[test]
    fn aggregates_grow_over_the_parts_of_a_batch() {
        let tun = tun();
        let mut writer = PacketWriter::new(tun.sink(), 512).unwrap();
        let short = |index: u32| seg().raw_ip().seq(1 + index * 100).len(100).bytes();
        (0..200).for_each(|index| writer.write(&short(index)).unwrap());
        assert!(tun.take_all().is_empty());
        writer.flush().unwrap();
        assert_eq!(tun.take_all().iter().map(|write| write.frames).collect::<Vec<_>>(), [200]);
        (0..200).for_each(|index| writer.write(&packet(index)).unwrap());
        assert!(!tun.take_all().is_empty(), "complete ones have left");
    }

    #[test]
    fn a_packet_that_was_decrypted_into_a_buffer_is_not_copied_again() {
        let tun = tun();
        let mut writer = PacketWriter::new(tun.sink(), 4).unwrap();
        for index in 0..2 {
            let mut buffer = writer.buffer().unwrap();
            let bytes = packet(index);
            buffer[..bytes.len()].copy_from_slice(&bytes);
            buffer.truncate(bytes.len());
            writer.push(buffer);
        }
        writer.flush().unwrap();
        assert_eq!(tun.take_all()[0].frames, 2);
    }

    #[test]
    fn with_the_policy_none_packets_are_written_one_by_one() {
        let tun = tun();
        let mut writer = PacketWriter::with_policy(tun.sink(), 16, Policy::none()).unwrap();
        (0..3).for_each(|index| writer.write(&packet(index)).unwrap());
        writer.flush().unwrap();
        assert_eq!(tun.take_all().iter().map(|write| write.frames).collect::<Vec<_>>(), [1; 3]);
    }

    #[test]
    fn a_policy_that_the_sink_cannot_carry_is_refused_with_the_reason() {
        let of_datagrams = Policy { udp: UdpRule::Equal, ..Policy::linux_gro() };
        for (policy, reason) in
            [(Policy::remember(), "policy remember"), (of_datagrams, "choose udp=off")]
        {
            let refused = PacketWriter::with_policy(tun().sink(), 16, policy).unwrap_err();
            assert!(refused.to_string().contains(reason), "{refused}");
        }
        let options = MemoryOptions { gso_bytes: 0, ..MemoryOptions::default() };
        assert!(PacketWriter::new(MemoryLink::new(options).sink(), 16).is_ok());
    }

    /// A thread fills buffers of the pool; the MTU grows meanwhile.
    #[test]
    fn buffers_come_from_the_pool_and_follow_the_mtu() {
        let tun = tun();
        let mut writer = PacketWriter::new(tun.sink(), 4).unwrap();
        let before = writer.pool().clone();
        let fill = |pool: &Pool, bytes: &[u8]| {
            let mut buffer = pool.take().unwrap();
            buffer.set_len(bytes.len());
            buffer.copy_from_slice(bytes);
            buffer
        };
        let first = std::thread::spawn(move || fill(&before, &packet(0))).join().unwrap();
        writer.set_mtu(9_000);
        let large = seg().raw_ip().seq(1_001).len(8_000).bytes();
        let second = fill(writer.pool(), &large);
        writer.push(first);
        writer.push(second);
        writer.flush().unwrap();
        let written: Vec<_> = tun.take_all().iter().map(|write| write.bytes.len()).collect();
        assert_eq!(written, [packet(0).len(), large.len()]);
    }

    #[test]
    fn a_packet_longer_than_a_buffer_is_written_behind_those_before_it() {
        let tun = tun();
        let mut writer = PacketWriter::new(tun.sink(), 4).unwrap();
        writer.write(&packet(0)).unwrap();
        let large = seg().raw_ip().seq(1_001).len(9_000).bytes();
        writer.write(&large).unwrap();
        let written: Vec<_> = tun.take_all().iter().map(|write| write.bytes.len()).collect();
        assert_eq!(written, [packet(0).len(), large.len()]);
    }

    #[test]
    fn a_caller_that_holds_all_buffers_learns_what_to_do() {
        let mut writer = PacketWriter::new(tun().sink(), 2).unwrap();
        let _held = [writer.buffer().unwrap(), writer.buffer().unwrap()];
        let error = writer.buffer().unwrap_err().to_string();
        assert!(error.contains("push or drop"), "{error}");
    }
}
