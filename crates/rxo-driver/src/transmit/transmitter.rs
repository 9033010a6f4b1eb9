//! Transmitter: sends packets by a [`Writer`], and accounts for every frame: it is sent, dropped, or kept
//! while the device is full.

use std::{io, iter, mem};

use rxo_device::SinkCounters;
use rxo_frame::{Gather, LinkKind};

use super::Writer;
use super::backlog::Backlog;
use super::batch::{Form, Message, Messages, Sealed};
use super::cutter::Cutter;
use super::refusal::Refusal;
use super::tally::Tally;

/// Maximum number of packets in one submission.
const CHUNK: usize = 64;

/// Number of pieces per packet for which memory is allocated at the start.
const USUAL_PIECES: usize = 48;

/// Sends packets: a writer, the packets that are kept while the device is full, and the counters.
#[derive(Debug)]
pub(crate) struct Transmitter<W> {
    writer: W,
    form: Form,
    messages: Messages,
    singles: Messages,
    backlog: Backlog,
    cutter: Cutter,
    tally: Tally,
}

/// The reason why the submission of a batch stopped.
enum Stop {
    /// All packets were sent.
    Done,
    /// The packet with this index was refused.
    Refused(usize, io::Error),
    /// The device was full at the packet with this index.
    Full(usize),
}

impl<W: Writer> Transmitter<W> {
    pub(crate) fn new(writer: W, form: Form) -> Self {
        Self {
            writer,
            form,
            messages: Messages::with_room(CHUNK, USUAL_PIECES),
            singles: Messages::with_room(CHUNK, 2),
            backlog: Backlog::new(),
            cutter: Cutter::new(),
            tally: Tally::default(),
        }
    }

    pub(crate) fn counters(&self) -> SinkCounters {
        self.tally.counters
    }

    /// Returns the next notice for the user, as one line; each notice is returned only once. `None` if there is
    /// none.
    pub(crate) fn take_notice(&mut self) -> Option<String> {
        self.tally.notice.take()
    }

    pub(crate) fn writer(&self) -> &W {
        &self.writer
    }

    pub(crate) fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Returns `true` if packets are kept because the device was full.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Returns the number of packets that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.backlog.len()
    }

    /// Sends the kept packets and then the batch `packets`, in order. Does not block.
    ///
    /// # Errors
    /// If the device is lost. Packets that were not sent are counted as dropped.
    pub(crate) fn transmit<'a, G: Gather<'a>>(
        &mut self,
        packets: impl ExactSizeIterator<Item = G>,
    ) -> io::Result<()> {
        let resumed = self.resume();
        self.transmit_after(resumed, packets)
    }

    /// Sends `packets`; keeps them while the sink is blocked, and drops them if `result` is an error.
    fn transmit_after<'a, G: Gather<'a>>(
        &mut self,
        mut result: io::Result<()>,
        mut packets: impl ExactSizeIterator<Item = G>,
    ) -> io::Result<()> {
        while packets.len() > 0 {
            if result.is_err() {
                packets.by_ref().for_each(|packet| self.tally.drop_packet(packet.frame_count()));
            } else if self.is_blocked() {
                packets.by_ref().for_each(|packet| self.keep(packet));
            } else {
                result = self.send_chunk(&mut packets);
            }
        }
        result
    }

    /// Sends kept packets until the device is full again.
    ///
    /// # Errors
    /// If the device is lost. The kept packets are counted as dropped.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        while self.is_blocked() {
            let mut batch = self.messages.begin(self.form);
            for (n, frame) in self.backlog.iter().take(CHUNK).enumerate() {
                // `keep_frame` has already checked that the frame can be encoded.
                batch.push(frame, n, None);
            }
            let batch = batch.seal();
            let count = batch.list().len();
            let stop =
                Sending { writer: &mut self.writer, tally: &mut self.tally }.submit(&batch, 0);
            drop(batch);
            match stop {
                Ok(Stop::Done) => self.backlog.forget(count),
                Ok(Stop::Full(sent)) => {
                    self.backlog.forget(sent);
                    return Ok(());
                }
                Ok(Stop::Refused(sent, _)) => {
                    self.tally.drop_packet(1);
                    self.backlog.forget(sent + 1);
                }
                Err(error) => {
                    // The packets of this batch are counted already.
                    self.backlog.forget(count);
                    self.abandon();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Drops all kept packets and counts them.
    pub(crate) fn abandon(&mut self) {
        let kept = self.backlog.len();
        (0..kept).for_each(|_| self.tally.drop_packet(1));
        self.backlog.forget(kept);
    }

    /// Sends up to [`CHUNK`] packets; keeps packets while the device is full. Stops after a GSO frame that
    /// this process must segment.
    fn send_chunk<'a, G: Gather<'a>>(
        &mut self,
        packets: &mut impl Iterator<Item = G>,
    ) -> io::Result<()> {
        let (mut items, mut to_cut) = ([None; CHUNK], None);
        let mut batch = self.messages.begin(self.form);
        for (n, packet) in packets.by_ref().take(CHUNK).enumerate() {
            if must_rewrite(packet, self.form) {
                to_cut = Some(packet);
                break;
            }
            items[n] = Some(packet);
            self.tally.encode(&mut batch, packet, n);
        }
        let mut result = Ok(());
        if !batch.is_empty() {
            let mut sending = Sending { writer: &mut self.writer, tally: &mut self.tally };
            let (form, cutter) = (self.form, &mut self.cutter);
            let mut keeping = Keeping { backlog: &mut self.backlog, form, cutter };
            result = sending.send(&batch.seal(), &items, &mut self.singles, &mut keeping);
        }
        match to_cut {
            Some(packet) if packet.frame_count() > 1 => {
                self.tally.counters.fallbacks += 1;
                let mut result = result;
                packet.for_each_frame(|frame| {
                    let before = mem::replace(&mut result, Ok(()));
                    result = self.transmit_after(before, iter::once(frame));
                });
                result
            }
            Some(packet) => self.send_segments(packet, result),
            None => result,
        }
    }

    /// Segments a GSO frame that the device cannot segment, and sends the segments. For a packet that is no
    /// GSO frame, completes the checksum and sends the packet.
    fn send_segments<'a, G: Gather<'a>>(
        &mut self,
        packet: G,
        mut result: io::Result<()>,
    ) -> io::Result<()> {
        if result.is_err() {
            self.tally.drop_packet(packet.frame_count());
            return result;
        }
        // The cutter is taken out of `self`, because its segments pass through this transmitter.
        let mut cutter = mem::replace(&mut self.cutter, Cutter::new());
        let mut segments = 0;
        if packet.offload().gso.is_none() {
            match cutter.complete(packet) {
                Some(frame) => result = self.transmit_after(result, iter::once(frame)),
                None => self.tally.drop_packet(1),
            }
            self.cutter = cutter;
            return result;
        }
        if let Some(mut cut) = cutter.cut(packet, self.form) {
            while let Some((batch, train)) = cut.next_batch() {
                let count = batch.frames().len();
                segments += count;
                if train.is_none() && count > 1 && self.form.header_bytes > 0 {
                    self.tally.note_cut();
                }
                result = match train {
                    Some(train) => self.transmit_after(result, iter::once(train)),
                    None => self.transmit_after(result, batch.frames()),
                };
            }
        }
        self.cutter = cutter;
        self.tally.count_segments(segments);
        result
    }

    fn keep<'a, G: Gather<'a>>(&mut self, packet: G) {
        let (form, cutter) = (self.form, &mut self.cutter);
        let mut keeping = Keeping { backlog: &mut self.backlog, form, cutter };
        keeping.keep(packet, None, &mut self.tally);
    }
}

/// Returns `true` if other packets must be sent in place of `packet`: the segments of a GSO frame, or, if the
/// device accepts no header, the original frames of an aggregate.
fn must_rewrite<'a>(packet: impl Gather<'a>, form: Form) -> bool {
    (packet.frame_count() == 1 || form.header_bytes == 0) && form.must_cut(packet.offload())
}

/// The backlog, with the form in which it stores packets.
struct Keeping<'t> {
    backlog: &'t mut Backlog,
    form: Form,
    cutter: &'t mut Cutter,
}

impl Keeping<'_> {
    /// Stores the original frames of a packet, or only the frame with index `part`. Single frames can be sent
    /// later even if the kernel refuses aggregates. Frames that exceed the backlog are dropped.
    fn keep<'a, G: Gather<'a>>(&mut self, packet: G, part: Option<usize>, tally: &mut Tally) {
        if packet.frame_count() == 1 {
            return self.keep_frame(packet, tally);
        }
        tally.counters.fallbacks += u64::from(part.is_none());
        let mut at = 0;
        packet.for_each_frame(|frame| {
            if part.is_none_or(|part| part == at) {
                self.keep_frame(frame, tally);
            }
            at += 1;
        });
    }

    fn keep_frame<'a>(&mut self, frame: impl Gather<'a>, tally: &mut Tally) {
        if self.form.must_cut(frame.offload()) {
            return self.keep_segments(frame, tally);
        }
        // A VLAN tag can be inserted only into an Ethernet header.
        let can_be_said = frame.vlan().is_none() || self.form.link == LinkKind::Ethernet;
        if can_be_said {
            tally.keep_copy(self.backlog, frame);
        } else {
            tally.drop_packet(1);
        }
    }

    /// Stores the segments of a GSO frame that the device cannot segment. Segments that exceed the backlog
    /// are dropped.
    fn keep_segments<'a>(&mut self, packet: impl Gather<'a>, tally: &mut Tally) {
        if packet.offload().gso.is_none() {
            match self.cutter.complete(packet) {
                Some(frame) => tally.keep_copy(self.backlog, frame),
                None => tally.drop_packet(1),
            }
            return;
        }
        if self.form.header_bytes > 0 {
            tally.note_cut();
        }
        let mut segments = 0;
        if let Some(mut cut) = self.cutter.cut(packet, self.form) {
            while let Some((batch, _)) = cut.next_batch() {
                segments += batch.frames().len();
                batch.frames().for_each(|segment| tally.keep_copy(self.backlog, segment));
            }
        }
        tally.count_segments(segments);
    }
}

/// The parts of a transmitter that a submission uses.
struct Sending<'t, W> {
    writer: &'t mut W,
    tally: &'t mut Tally,
}

impl<W: Writer> Sending<'_, W> {
    /// Sends a batch. If an aggregate is refused, sends its original frames in its place. Once the device is
    /// full, keeps the remaining packets.
    fn send<'a, G: Gather<'a>>(
        &mut self,
        batch: &Sealed<'_, 'a>,
        items: &[Option<G>],
        singles: &mut Messages,
        keeping: &mut Keeping<'_>,
    ) -> io::Result<()> {
        let mut from = 0;
        while keeping.backlog.is_empty() {
            from = match self.submit(batch, from)? {
                Stop::Done => return Ok(()),
                Stop::Full(n) => {
                    self.keep_message(&batch.list()[n], items, keeping);
                    n + 1
                }
                Stop::Refused(n, error) => {
                    let message = &batch.list()[n];
                    let sent = self.send_refused(message, items, &error, singles, keeping);
                    self.or_drop_rest(sent, batch, n + 1)?;
                    n + 1
                }
            };
        }
        let rest = batch.list()[from..].iter();
        rest.for_each(|message| self.keep_message(message, items, keeping));
        Ok(())
    }

    /// Sends the original frames of a refused aggregate; drops any other refused packet.
    fn send_refused<'a, G: Gather<'a>>(
        &mut self,
        message: &Message,
        items: &[Option<G>],
        error: &io::Error,
        singles: &mut Messages,
        keeping: &mut Keeping<'_>,
    ) -> io::Result<()> {
        let aggregate =
            items[message.item].filter(|_| message.part.is_none() && message.frames > 1);
        if let Some(aggregate) = aggregate {
            self.tally.count_fallback(message.gso, error);
            return self.send_frames(aggregate, singles, keeping);
        }
        self.tally.drop_packet(message.frames);
        Ok(())
    }

    /// Sends the original frames of an aggregate. Drops each frame that the kernel refuses.
    fn send_frames<'a, G: Gather<'a>>(
        &mut self,
        packet: G,
        singles: &mut Messages,
        keeping: &mut Keeping<'_>,
    ) -> io::Result<()> {
        let mut frames = singles.begin(keeping.form);
        self.tally.encode_singly(&mut frames, packet, 0);
        let frames = frames.seal();
        let mut from = 0;
        loop {
            match self.submit(&frames, from)? {
                Stop::Done => return Ok(()),
                Stop::Refused(n, _) => {
                    self.tally.drop_packet(1);
                    from = n + 1;
                }
                Stop::Full(n) => {
                    let rest = frames.list()[n..].iter();
                    rest.for_each(|message| self.keep_message(message, &[Some(packet)], keeping));
                    return Ok(());
                }
            }
        }
    }

    fn keep_message<'a, G: Gather<'a>>(
        &mut self,
        message: &Message,
        items: &[Option<G>],
        keeping: &mut Keeping<'_>,
    ) {
        match items[message.item] {
            Some(packet) => keeping.keep(packet, message.part, self.tally),
            None => self.tally.drop_packet(message.frames),
        }
    }

    /// Submits packets, starting at index `from`, and stops at the first that is not sent.
    fn submit(&mut self, batch: &Sealed<'_, '_>, mut from: usize) -> io::Result<Stop> {
        while from < batch.list().len() {
            let written = self.writer.write(batch, from);
            self.tally.count(batch, from, &written);
            from += written.sent;
            let Some(error) = written.refused else { continue };
            match Refusal::of(&error) {
                Refusal::Interrupted => {}
                Refusal::Full => return Ok(Stop::Full(from)),
                Refusal::Packet => return Ok(Stop::Refused(from, error)),
                Refusal::Lost => return self.or_drop_rest(Err(error), batch, from),
            }
        }
        Ok(Stop::Done)
    }

    /// If `result` is an error, counts all packets from index `from` to the end as dropped. Returns `result`.
    fn or_drop_rest<T>(
        &mut self,
        result: io::Result<T>,
        batch: &Sealed<'_, '_>,
        from: usize,
    ) -> io::Result<T> {
        if result.is_err() {
            batch.list()[from..].iter().for_each(|message| self.tally.drop_packet(message.frames));
        }
        result
    }
}

#[cfg(test)]
mod tests;
