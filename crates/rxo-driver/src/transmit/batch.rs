//! Batch of encoded packets: for each packet a `virtio_net_hdr`, and an array of pieces for scatter/gather.
//!
//! This module is separate from submission so that every sink encodes in the same way. Contract: no payload
//! is copied, and each packet has a header of its own. A [`Batch`] borrows the pieces for `'a`, and clears
//! its pointers to them when it is dropped.
#![allow(unsafe_code, reason = "pieces are handed to the kernel as pointers and lengths")]

use std::marker::PhantomData;
use std::ptr;

use libc::iovec;
use rxo_frame::{Gather, GsoKind, GsoTunnel, LinkKind, Offload, VlanTag};
use rxo_vnet::{TUNNEL_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

/// The maximum number of pieces that the kernel accepts for one packet, including its header.
pub(crate) const MOST_PIECES: usize = libc::UIO_MAXIOV as usize;

/// The length of the two Ethernet addresses, after which a VLAN tag is inserted.
const ADDRESS_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// Space for the longest `virtio_net_hdr`, followed by the VLAN tag to insert into the frame, if there is
/// one.
type Head = [u8; TUNNEL_HEADER_BYTES + TAG_BYTES];

/// The form in which packets are passed to a device: their link layer, and the offloads of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The link layer of the packets.
    pub(crate) link: LinkKind,
    /// The length of the `virtio_net_hdr` before each packet, in bytes, at most [`TUNNEL_HEADER_BYTES`]; 0 if
    /// the device accepts no header.
    pub(crate) header_bytes: usize,
    /// `true` if the device accepts the longer `virtio_net_hdr`, which can describe a tunnel over UDP.
    pub(crate) takes_tunnels: bool,
    /// `true` if the device segments UDP GSO frames, which are trains of datagrams.
    pub(crate) takes_trains: bool,
}

impl Form {
    /// Ethernet frames, each preceded by the short `virtio_net_hdr`, which cannot describe a tunnel.
    #[cfg(test)]
    pub(crate) const ETHERNET: Self = Self {
        link: LinkKind::Ethernet,
        header_bytes: VNET_HEADER_BYTES,
        takes_tunnels: false,
        takes_trains: false,
    };

    /// Returns `true` if this process must segment the packet, or complete its checksum, because no header can
    /// describe it to the device: the packet has a tunnel that the header cannot express, or the device accepts
    /// no header.
    #[inline]
    pub(crate) fn must_cut(self, offload: Offload) -> bool {
        let tunnel = offload.gso.and_then(|gso| gso.tunnel);
        tunnel.is_some_and(|tunnel| !self.takes_tunnels || tunnel == GsoTunnel::OTHER)
            || (self.header_bytes == 0 && (offload.gso.is_some() || offload.checksum.is_partial()))
    }
}

/// One encoded packet of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The index of the caller's packet. This message is the whole packet, or one of its original frames.
    pub(crate) item: usize,
    /// The index of this message's frame among the frames of the caller's packet; `None` if the message is
    /// the whole packet.
    pub(crate) part: Option<usize>,
    /// The packet's length without the header, in bytes.
    pub(crate) bytes: usize,
    /// The number of original frames in the packet.
    pub(crate) frames: usize,
    /// The kind of a GSO frame; `None` for other packets.
    pub(crate) gso: Option<GsoKind>,
    tagged: bool,
    first_piece: usize,
    pieces: usize,
}

impl Message {
    /// Returns the number of pieces of the caller's packet, without the header and an inserted tag.
    pub(crate) fn pieces(&self) -> usize {
        // An inserted tag is a piece, and splits another piece in two.
        self.pieces - 1 - if self.tagged { 2 } else { 0 }
    }
}

/// The memory of a batch, reused for the next batch.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    heads: Vec<Head>,
    pieces: Vec<iovec>,
    list: Vec<Message>,
}

// SAFETY: its pointers are only followed by a `Sealed` batch, which borrows it, on the thread that encoded the batch.
unsafe impl Send for Messages {}

impl Messages {
    /// Allocates memory for `messages` packets of `pieces` pieces each. The memory grows if a batch needs
    /// more.
    pub(crate) fn with_room(messages: usize, pieces: usize) -> Self {
        Self {
            heads: Vec::with_capacity(messages),
            pieces: Vec::with_capacity(messages * pieces),
            list: Vec::with_capacity(messages),
        }
    }

    /// Starts an empty batch for packets whose pieces live for `'a`.
    pub(crate) fn begin<'s, 'a>(&'s mut self, form: Form) -> Batch<'s, 'a> {
        self.clear();
        Batch { messages: self, form, pieces_of: PhantomData }
    }

    fn clear(&mut self) {
        self.heads.clear();
        self.pieces.clear();
        self.list.clear();
    }
}

/// A batch that is being filled with packets.
pub(crate) struct Batch<'s, 'a> {
    messages: &'s mut Messages,
    form: Form,
    pieces_of: PhantomData<&'a [u8]>,
}

impl<'s, 'a> Batch<'s, 'a> {
    /// Adds a packet. Returns `false` and adds nothing if the packet cannot be encoded: the packet has too many
    /// pieces; it needs an offload, but the device accepts no header; it has a VLAN tag but no Ethernet header;
    /// or its first piece is shorter than the two Ethernet addresses.
    pub(crate) fn push<G: Gather<'a>>(
        &mut self,
        packet: G,
        item: usize,
        part: Option<usize>,
    ) -> bool {
        let vlan = packet.vlan();
        if vlan.is_some() && self.form.link == LinkKind::RawIp {
            return false;
        }
        if self.form.header_bytes == 0 && self.form.must_cut(packet.offload()) {
            return false;
        }
        let first_piece = self.messages.pieces.len();
        // A placeholder for the header: until `seal`, the heads may move in memory.
        self.messages.pieces.push(piece(&[]));
        let has_place = match vlan {
            None => {
                packet.for_each_slice(|slice| self.messages.pieces.push(piece(slice)));
                true
            }
            Some(_) => self.push_tagged_pieces(packet),
        };
        let pieces = self.messages.pieces.len() - first_piece;
        if !has_place || pieces > MOST_PIECES {
            self.messages.pieces.truncate(first_piece);
            return false;
        }
        let offload = packet.offload();
        let header = VnetHeader::for_packet(offload, tag_bytes(vlan));
        self.messages.heads.push(head(self.form, header, vlan));
        self.messages.list.push(Message {
            item,
            part,
            bytes: packet.byte_len() + usize::from(tag_bytes(vlan)),
            frames: packet.frame_count(),
            gso: offload.gso.map(|gso| gso.kind),
            tagged: vlan.is_some(),
            first_piece,
            pieces,
        });
        true
    }

    /// Splits the first piece after the addresses, and inserts a placeholder for the tag. Returns `false` if
    /// the first piece is shorter than the addresses.
    fn push_tagged_pieces<G: Gather<'a>>(&mut self, packet: G) -> bool {
        let pieces = &mut self.messages.pieces;
        let (mut is_first, mut has_place) = (true, false);
        packet.for_each_slice(|slice| {
            let mut rest = slice;
            if std::mem::take(&mut is_first)
                && let Some((addresses, behind)) = slice.split_at_checked(ADDRESS_BYTES)
            {
                pieces.push(piece(addresses));
                pieces.push(piece(&[]));
                (rest, has_place) = (behind, true);
            }
            pieces.push(piece(rest));
        });
        has_place
    }

    /// Returns the form in which the packets are encoded.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// Returns `true` if the batch has no packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.list.is_empty()
    }

    /// Completes the batch. The heads do not move afterwards, so pieces can point to the heads.
    pub(crate) fn seal(self) -> Sealed<'s, 'a> {
        let Messages { heads, pieces, list } = &mut *self.messages;
        let header_bytes = self.form.header_bytes;
        for (head, message) in heads.iter().zip(list) {
            let (header, tag) = head.split_at(TUNNEL_HEADER_BYTES);
            pieces[message.first_piece] = piece(&header[..header_bytes]);
            if message.tagged {
                pieces[message.first_piece + 2] = piece(tag);
            }
        }
        Sealed { messages: self.messages, pieces_of: PhantomData }
    }
}

/// A complete batch, ready for the kernel.
pub(crate) struct Sealed<'s, 'a> {
    messages: &'s mut Messages,
    pieces_of: PhantomData<&'a [u8]>,
}

impl Sealed<'_, '_> {
    /// Returns the packets in order.
    pub(crate) fn list(&self) -> &[Message] {
        &self.messages.list
    }

    /// Returns the header and pieces of packet `n`. The pointers stay valid while this value lives.
    pub(crate) fn pieces(&self, n: usize) -> &[iovec] {
        let message = &self.messages.list[n];
        &self.messages.pieces[message.first_piece..message.first_piece + message.pieces]
    }

    /// Returns the header and pieces of packet `n` as byte slices.
    pub(crate) fn slices(&self, n: usize) -> impl Iterator<Item = &[u8]> {
        self.pieces(n).iter().map(|piece| {
            // SAFETY: `piece` made it of a slice that lives as long as the batch.
            unsafe { std::slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len) }
        })
    }
}

impl Drop for Sealed<'_, '_> {
    fn drop(&mut self) {
        // The packets may be freed next, so no pointer to them is kept.
        self.messages.clear();
    }
}

/// Wraps bytes as a piece to read from. The kernel uses one structure for reading and writing.
fn piece(bytes: &[u8]) -> iovec {
    iovec { iov_base: ptr::from_ref(bytes).cast_mut().cast(), iov_len: bytes.len() }
}

const fn tag_bytes(vlan: Option<VlanTag>) -> u16 {
    if vlan.is_some() { TAG_BYTES as u16 } else { 0 }
}

fn head(form: Form, header: VnetHeader, vlan: Option<VlanTag>) -> Head {
    let mut head = [0; TUNNEL_HEADER_BYTES + TAG_BYTES];
    if form.takes_tunnels {
        head[..TUNNEL_HEADER_BYTES].copy_from_slice(&header.to_tunnel_bytes());
    } else {
        head[..VNET_HEADER_BYTES].copy_from_slice(&header.to_bytes());
    }
    if let Some(tag) = vlan {
        head[TUNNEL_HEADER_BYTES..][..2].copy_from_slice(&tag.tpid.get().to_be_bytes());
        head[TUNNEL_HEADER_BYTES + 2..].copy_from_slice(&tag.tci.to_be_bytes());
    }
    head
}
