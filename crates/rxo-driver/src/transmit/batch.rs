//! Encoded packets: for each a `virtio_net_hdr` and a list of pieces to gather.
//!
//! Encoding is separate from submitting so that every sink encodes alike. Contract: no payload is
//! copied, and each packet has a header of its own. A [`Batch`] borrows the pieces for `'a`, and
//! clears its pointers to them when it is dropped.
#![allow(unsafe_code, reason = "pieces are handed to the kernel as pointers and lengths")]

use std::marker::PhantomData;
use std::ptr;

use libc::iovec;
use rxo_frame::{Gather, Gso, GsoKind, GsoTunnel, LinkKind, VlanTag};
use rxo_vnet::{TUNNEL_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};

/// The most pieces that the kernel accepts for one packet, its header included.
pub(crate) const MOST_PIECES: usize = libc::UIO_MAXIOV as usize;

/// A VLAN tag follows the two Ethernet addresses.
const ADDRESS_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// Room for the longest `virtio_net_hdr`, followed by the VLAN tag to be inserted into the frame, if there is one.
type Head = [u8; TUNNEL_HEADER_BYTES + TAG_BYTES];

/// In which form a device takes packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// What a packet begins with.
    pub(crate) link: LinkKind,
    /// Whether the header can name a tunnel over UDP. It is longer then.
    pub(crate) takes_tunnels: bool,
    /// Whether the device divides GSO frames of UDP, which are trains of datagrams.
    pub(crate) takes_trains: bool,
}

impl Form {
    /// Ethernet frames behind headers that name no tunnel.
    #[cfg(test)]
    pub(crate) const ETHERNET: Self =
        Self { link: LinkKind::Ethernet, takes_tunnels: false, takes_trains: false };

    /// Whether a GSO frame must be cut into its segments here, because no header can say what the device is to do.
    #[inline]
    pub(crate) fn must_cut(self, gso: Option<Gso>) -> bool {
        let tunnel = gso.and_then(|gso| gso.tunnel);
        tunnel.is_some_and(|tunnel| !self.takes_tunnels || tunnel == GsoTunnel::OTHER)
    }

    const fn header_bytes(self) -> usize {
        if self.takes_tunnels { TUNNEL_HEADER_BYTES } else { VNET_HEADER_BYTES }
    }
}

/// One packet of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Index of the caller's packet that it is, or is part of.
    pub(crate) item: usize,
    /// Index of the frame in that packet; `None` for the whole packet.
    pub(crate) part: Option<usize>,
    /// Its length without the header, in bytes.
    pub(crate) bytes: usize,
    /// How many original frames are in it.
    pub(crate) frames: usize,
    /// Its kind if it is a GSO frame.
    pub(crate) gso: Option<GsoKind>,
    tagged: bool,
    first_piece: usize,
    pieces: usize,
}

impl Message {
    /// The number of pieces that the packet was given in, without its header and an inserted tag.
    pub(crate) fn pieces(&self) -> usize {
        // A tag is a piece, and divides another.
        self.pieces - 1 - if self.tagged { 2 } else { 0 }
    }
}

/// The memory of a batch, reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    heads: Vec<Head>,
    pieces: Vec<iovec>,
    list: Vec<Message>,
}

impl Messages {
    /// Allocates room for `messages` packets of `pieces` pieces each. It grows for more.
    pub(crate) fn with_room(messages: usize, pieces: usize) -> Self {
        Self {
            heads: Vec::with_capacity(messages),
            pieces: Vec::with_capacity(messages * pieces),
            list: Vec::with_capacity(messages),
        }
    }

    /// Begins an empty batch for packets whose pieces live for `'a`.
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

/// A batch to which packets are added.
pub(crate) struct Batch<'s, 'a> {
    messages: &'s mut Messages,
    form: Form,
    pieces_of: PhantomData<&'a [u8]>,
}

impl<'s, 'a> Batch<'s, 'a> {
    /// Adds a packet. Returns `false` and adds nothing if the packet cannot be encoded: it has too many
    /// pieces, or a VLAN tag but no Ethernet header, or less than its addresses in the first piece, to insert it
    /// into.
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
        let first_piece = self.messages.pieces.len();
        // A place for the header. `seal` fills it in, because until then the heads may move.
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

    /// Splits the first slice after the addresses, and leaves a place for the tag between the parts. Returns
    /// whether the first slice has the addresses.
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

    /// The form of its packets.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// Whether it has no packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.list.is_empty()
    }

    /// Completes the batch. From here on the heads do not move, so pieces can point to them.
    pub(crate) fn seal(self) -> Sealed<'s, 'a> {
        let Messages { heads, pieces, list } = &mut *self.messages;
        let header_bytes = self.form.header_bytes();
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

/// A complete batch.
pub(crate) struct Sealed<'s, 'a> {
    messages: &'s mut Messages,
    pieces_of: PhantomData<&'a [u8]>,
}

impl Sealed<'_, '_> {
    /// The packets in order.
    pub(crate) fn list(&self) -> &[Message] {
        &self.messages.list
    }

    /// The header and pieces of the `n`-th packet. They stay valid while this value lives.
    pub(crate) fn pieces(&self, n: usize) -> &[iovec] {
        let message = &self.messages.list[n];
        &self.messages.pieces[message.first_piece..message.first_piece + message.pieces]
    }

    /// The header and pieces of the `n`-th packet as bytes.
    pub(crate) fn slices(&self, n: usize) -> impl Iterator<Item = &[u8]> {
        self.pieces(n).iter().map(|piece| {
            // SAFETY: `piece` made it of a slice that lives as long as the batch.
            unsafe { std::slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len) }
        })
    }
}

impl Drop for Sealed<'_, '_> {
    fn drop(&mut self) {
        // The packets may be gone next, so no pointer to them is kept.
        self.messages.clear();
    }
}

/// A piece to read from. The kernel has one structure for reading and writing.
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
