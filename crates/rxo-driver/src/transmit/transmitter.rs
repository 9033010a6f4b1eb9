//! Sends packets through a [`Writer`], and sees to it that none is lost to a refusal.

use std::io;
use std::time::Duration;

use rxo_device::SinkCounters;
use rxo_frame::{Gather, GsoKind, LinkKind};

use super::batch::{Batch, Messages, Sealed};
use super::refusal::{Refusal, Refused};
use super::{Writer, Written};
use crate::clock;
use crate::wait::{pause, wait_writable};

/// Packets submitted together.
const CHUNK: usize = 64;

/// Pieces per packet that there is room for from the start.
const USUAL_PIECES: usize = 48;

/// How long one call waits for room in all. It is a frame's place in a queue of the kernel's that
/// is waited for; past this the frame is dropped, as a full queue does, and TCP slows down.
const PATIENCE: Duration = Duration::from_millis(10);

/// How long to wait at a time where the kernel cannot say when there is room.
const ROOM_PAUSE: Duration = Duration::from_micros(100);

/// A writer, and what was sent through it.
#[derive(Debug)]
pub(crate) struct Transmitter<W> {
    writer: W,
    link: LinkKind,
    messages: Messages,
    singles: Messages,
    tally: Tally,
}

/// What was sent, lost and refused.
#[derive(Debug, Default)]
struct Tally {
    counters: SinkCounters,
    refused: Refused,
    notice: Option<String>,
}

/// Why submitting a batch stopped.
enum Stop {
    /// Everything is sent or counted as dropped.
    Done,
    /// The `n`-th packet was refused as it is.
    Refused(usize, io::Error),
}

impl<W: Writer> Transmitter<W> {
    pub(crate) fn new(writer: W, link: LinkKind) -> Self {
        Self {
            writer,
            link,
            messages: Messages::with_room(CHUNK, USUAL_PIECES),
            singles: Messages::with_room(CHUNK, 2),
            tally: Tally::default(),
        }
    }

    pub(crate) fn counters(&self) -> SinkCounters {
        self.tally.counters
    }

    /// What the user should know, once.
    pub(crate) fn take_notice(&mut self) -> Option<String> {
        self.tally.notice.take()
    }

    pub(crate) fn writer(&self) -> &W {
        &self.writer
    }

    /// Sends a batch in order.
    ///
    /// # Errors
    /// When the device is lost. What was not sent is counted as dropped.
    pub(crate) fn transmit<'a, G: Gather<'a>>(
        &mut self,
        mut packets: impl ExactSizeIterator<Item = G>,
    ) -> io::Result<()> {
        let mut patience = Patience::default();
        while packets.len() > 0 {
            let mut items = [None; CHUNK];
            let mut batch = self.messages.begin(self.link);
            for (n, packet) in packets.by_ref().take(CHUNK).enumerate() {
                items[n] = Some(packet);
                self.tally.encode(&mut batch, packet, n);
            }
            if batch.is_empty() {
                continue;
            }
            let mut sending = Sending {
                writer: &mut self.writer,
                tally: &mut self.tally,
                patience: &mut patience,
            };
            let sent = sending.send(&batch.seal(), &items, &mut self.singles, self.link);
            if let Err(error) = sent {
                self.tally.counters.dropped += packets.len() as u64;
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Tally {
    /// Adds a packet whole, or, where that is known to be refused, as its frames.
    fn encode<'a, G: Gather<'a>>(&mut self, batch: &mut Batch<'_, 'a>, packet: G, item: usize) {
        let is_aggregate = packet.frame_count() > 1;
        let kind = packet.offload().gso.map(|gso| gso.kind);
        let skip = is_aggregate && kind.is_some_and(|kind| self.refused.skip(kind));
        if !skip && batch.push(packet, item, true) {
            return;
        }
        if !is_aggregate {
            self.counters.dropped += 1;
            return;
        }
        self.counters.fallbacks += 1;
        self.encode_singly(batch, packet, item);
    }

    fn encode_singly<'a, G: Gather<'a>>(
        &mut self,
        batch: &mut Batch<'_, 'a>,
        packet: G,
        item: usize,
    ) {
        packet.for_each_frame(|frame| {
            if !batch.push(frame, item, false) {
                self.counters.dropped += 1;
            }
        });
    }

    fn count(&mut self, batch: &Sealed<'_, '_>, from: usize, written: &Written) {
        self.counters.submissions += written.submissions;
        self.counters.packets += written.sent as u64;
        for message in &batch.list()[from..from + written.sent] {
            self.counters.bytes += message.bytes as u64;
            self.counters.frames += message.frames as u64;
        }
    }

    /// An aggregate was refused and goes out singly; if it is for its kind, that is remembered.
    fn count_fallback(&mut self, kind: Option<GsoKind>, error: &io::Error) {
        self.counters.fallbacks += 1;
        let not_supported = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP));
        let Some(kind) = kind.filter(|_| not_supported) else { return };
        if self.refused.remember(kind) {
            self.notice = Some(format!(
                "the kernel refused a {kind:?} aggregate ({error}); such packets are sent singly \
                 from now on, which costs more"
            ));
        }
    }
}

/// One call's way of sending.
struct Sending<'t, W> {
    writer: &'t mut W,
    tally: &'t mut Tally,
    patience: &'t mut Patience,
}

impl<W: Writer> Sending<'_, W> {
    /// Sends a batch; an aggregate that is refused is sent as its frames, in its place.
    fn send<'a, G: Gather<'a>>(
        &mut self,
        batch: &Sealed<'_, 'a>,
        items: &[Option<G>],
        singles: &mut Messages,
        link: LinkKind,
    ) -> io::Result<()> {
        let mut from = 0;
        while let Stop::Refused(n, error) = self.submit(batch, from)? {
            let message = batch.list()[n];
            match items[message.item] {
                Some(packet) if message.whole && message.frames > 1 => {
                    self.tally.count_fallback(message.gso, &error);
                    let mut frames = singles.begin(link);
                    self.tally.encode_singly(&mut frames, packet, 0);
                    let sent = self.send_singles(&frames.seal());
                    self.or_drop_rest(sent, batch, n + 1)?;
                }
                _ => self.tally.counters.dropped += 1,
            }
            from = n + 1;
        }
        Ok(())
    }

    /// Sends frames; one that is refused is dropped, for there is nothing smaller to try.
    fn send_singles(&mut self, batch: &Sealed<'_, '_>) -> io::Result<()> {
        let mut from = 0;
        while let Stop::Refused(n, _) = self.submit(batch, from)? {
            self.tally.counters.dropped += 1;
            from = n + 1;
        }
        Ok(())
    }

    /// Submits from the `from`-th packet on, waiting for room as long as patience lasts.
    fn submit(&mut self, batch: &Sealed<'_, '_>, mut from: usize) -> io::Result<Stop> {
        while from < batch.list().len() {
            let written = self.writer.write(batch, from);
            self.tally.count(batch, from, &written);
            from += written.sent;
            let Some(error) = written.refused else { continue };
            match Refusal::of(&error) {
                Refusal::Interrupted => {}
                Refusal::Full if self.patience.wait(self.writer) => {}
                Refusal::Full => {
                    self.tally.counters.dropped += 1;
                    from += 1;
                }
                Refusal::Packet => return Ok(Stop::Refused(from, error)),
                Refusal::Lost => return self.or_drop_rest(Err(error), batch, from),
            }
        }
        Ok(Stop::Done)
    }

    /// When the device is lost, everything from the `from`-th packet on is.
    fn or_drop_rest<T>(
        &mut self,
        result: io::Result<T>,
        batch: &Sealed<'_, '_>,
        from: usize,
    ) -> io::Result<T> {
        if result.is_err() {
            self.tally.counters.dropped += (batch.list().len() - from) as u64;
        }
        result
    }
}

/// How long one call may still wait.
#[derive(Debug, Default)]
struct Patience {
    ends_at: Option<rxo_frame::Instant>,
}

impl Patience {
    /// Waits a moment for room; `false` when it has been long enough.
    fn wait<W: Writer>(&mut self, writer: &W) -> bool {
        let now = clock::now();
        let ends_at = *self.ends_at.get_or_insert(now + PATIENCE);
        if now >= ends_at {
            return false;
        }
        // A queue in the kernel can be full while the descriptor counts as writable: then the
        // wait would not wait.
        let began_at = now;
        let waited = wait_writable(writer.descriptor(), ends_at.since(now));
        if waited.is_err() || clock::now().since(began_at) < ROOM_PAUSE {
            pause(ROOM_PAUSE);
        }
        true
    }
}

#[cfg(test)]
mod tests;
