//! Refusals: the meanings of write errors, and the kinds of aggregates that the kernel has refused.

use std::io;

use rxo_frame::GsoKind;

/// The meaning of an error with which the kernel refuses a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The device's queue is full. The descriptor becomes writable when there is free space.
    Full,
    /// A signal interrupted the write, so it must be repeated.
    Interrupted,
    /// The device is gone or down, so no packet can be sent now.
    Lost,
    /// The kernel refuses this packet because of an egress filter, a lack of memory, or a queue that other
    /// senders fill. The packet is lost, and no event reports when the kernel will accept the next packet. If
    /// packets of this sink fill the queue, the error is [`Refusal::Full`] instead
    /// ([`FullQueue`](super::full_queue::FullQueue)).
    Packet,
}

impl Refusal {
    /// Returns the meaning of the error of a write.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => Self::Full,
            Some(libc::EINTR) => Self::Interrupted,
            Some(
                libc::ENODEV
                | libc::ENXIO
                | libc::ENETDOWN
                | libc::EBADFD
                | libc::EBADF
                | libc::EIO,
            ) => Self::Lost,
            _ => Self::Packet,
        }
    }
}

/// Number of aggregates of a refused kind that are sent as single frames before an aggregate is again submitted
/// as a whole. A kernel that does not support a kind refuses all aggregates of this kind. But if the kernel
/// refused only one unusual packet, later aggregates must not be sent as single frames forever.
pub(super) const TRY_AGAIN_AFTER: u16 = 1_000;

/// The kinds of aggregates that the kernel has refused.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// For each kind, the number of further aggregates that are sent as single frames without a first attempt.
    not_worth_trying: [u16; KINDS],
    reported: [bool; KINDS],
}

const KINDS: usize = 5;

impl Refused {
    /// Returns `true` if the next aggregate of this kind must be sent as single frames without a first attempt,
    /// and counts that aggregate.
    pub(crate) fn skip(&mut self, kind: GsoKind) -> bool {
        let left = &mut self.not_worth_trying[index(kind)];
        let skip = *left > 0;
        *left = left.saturating_sub(1);
        skip
    }

    /// Records a refusal of this kind. Returns `true` if this is the first refusal, about which the user is
    /// notified.
    pub(crate) fn remember(&mut self, kind: GsoKind) -> bool {
        self.not_worth_trying[index(kind)] = TRY_AGAIN_AFTER;
        !std::mem::replace(&mut self.reported[index(kind)], true)
    }
}

const fn index(kind: GsoKind) -> usize {
    match kind {
        GsoKind::TcpV4 => 0,
        GsoKind::TcpV6 => 1,
        GsoKind::UdpFragment => 2,
        GsoKind::Udp => 3,
        GsoKind::AckTemplate => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_remedy() {
        let rows = [
            (libc::EAGAIN, Refusal::Full),
            (libc::ENOBUFS, Refusal::Packet),
            (libc::ENOMEM, Refusal::Packet),
            (libc::EINTR, Refusal::Interrupted),
            (libc::EIO, Refusal::Lost),
            (libc::EBADFD, Refusal::Lost),
            (libc::ENETDOWN, Refusal::Lost),
            (libc::ENXIO, Refusal::Lost),
            (libc::EINVAL, Refusal::Packet),
            (libc::EMSGSIZE, Refusal::Packet),
        ];
        for (code, refusal) in rows {
            assert_eq!(Refusal::of(&io::Error::from_raw_os_error(code)), refusal, "{code}");
        }
    }

    #[test]
    fn a_refused_kind_is_skipped_for_a_while_and_said_once() {
        let mut refused = Refused::default();
        assert!(!refused.skip(GsoKind::TcpV4));
        assert!(refused.remember(GsoKind::TcpV4));
        for _ in 0..TRY_AGAIN_AFTER {
            assert!(refused.skip(GsoKind::TcpV4));
            assert!(!refused.skip(GsoKind::TcpV6));
        }
        assert!(!refused.skip(GsoKind::TcpV4), "tried again");
        assert!(!refused.remember(GsoKind::TcpV4), "but not said again");
    }
}
