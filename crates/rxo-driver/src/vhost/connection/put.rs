//! Put: writes packets into the buffers that a guest has posted.

use std::io;
use std::time::Duration;

use rxo_virtqueue::{Fit, Refused};
use rxo_vnet::{BUFFER_COUNT_AT, VIRTIO_HEADER_BYTES};

use super::Connection;
use crate::clock;
use crate::vhost::queue::Queue;
use crate::vhost_user::features::MRG_RXBUF;
use crate::virtio_net::{Link, PacketRing, queue_of};

impl PacketRing for Connection {
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let header = &header[..self.header_bytes()];
        let merges = self.session.features() & MRG_RXBUF != 0;
        let fit =
            if merges { Fit::Merged { count_at: BUFFER_COUNT_AT as u32 } } else { Fit::OneChain };
        let down = || io::Error::from_raw_os_error(libc::ENETDOWN);
        let too_large = || io::Error::from_raw_os_error(libc::EMSGSIZE);
        let mut pieces = pieces.peekable();
        let first = pieces.peek().copied().unwrap_or_default();
        let chosen = queue_of(first, self.receivers.len());
        let ring = self.receivers.get(chosen).copied();
        let Some(Queue { queue, starved_since, .. }) = ring.and_then(|n| self.queues[n].as_mut())
        else {
            return Err(down());
        };
        let all = u32::try_from(header.len() + bytes).map_err(|_| too_large())?;
        for _ in 0..MOST_ATTEMPTS {
            let refused = match queue.reserve(self.shared.memory(), all, fit) {
                Ok(mut writer) => {
                    if let Some(places) = self.places {
                        places.count(&writer, (header, all), first);
                    }
                    writer.write(header);
                    pieces.for_each(|piece| writer.write(piece));
                    self.has_put = true;
                    let finished = writer.finish().map(|_| ()).map_err(|_| too_large());
                    if starved_since.take().is_some() {
                        queue.disable_notifications();
                    }
                    return finished;
                }
                Err(refused) => refused,
            };
            match refused {
                _ if queue.is_broken() => return Err(down()),
                Refused::DoesNotFit { .. } => return Err(too_large()),
                Refused::Invalid(_) => {}
                Refused::NoBuffers | Refused::TooFew { .. } => {
                    self.moderator.expedite();
                    let now = clock::now();
                    let since = *starved_since.get_or_insert(now);
                    if queue.enable_notifications_of_more() {
                        continue;
                    }
                    let is_in_vain = matches!(refused, Refused::TooFew { is_all, .. }
                        if is_all || now.since(since) >= BUFFER_TIMEOUT);
                    let code = if is_in_vain { libc::ENOBUFS } else { libc::EAGAIN };
                    return Err(io::Error::from_raw_os_error(code));
                }
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }
}

/// The time without enough buffers after which a GSO frame is segmented. Needed because without the event index,
/// the device cannot know whether the guest will post further buffers.
const BUFFER_TIMEOUT: Duration = Duration::from_millis(10);

/// Maximum number of attempts to find buffers for a packet. If a guest posts more invalid chains than that,
/// the packet waits.
const MOST_ATTEMPTS: usize = 8;
