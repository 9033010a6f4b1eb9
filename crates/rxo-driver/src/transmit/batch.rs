//! Packets as the kernel takes them: a header each, and a list of pieces to gather.
//!
//! It stands apart from the ways to submit so that every sink encodes alike. Contract: nothing of
//! a packet's payload is copied; a header is made for each packet and goes with that one only. A
//! [`Batch`] borrows the pieces for `'a`, and forgets them when it ends.
#![allow(unsafe_code, reason = "pieces are handed to the kernel as pointers and lengths")]

use std::marker::PhantomData;
use std::ptr;

use libc::iovec;
use rxo_frame::{Gather, GsoKind, LinkKind, VlanTag};
use rxo_vnet::{VNET_HEADER_BYTES, VnetHeader};

/// The most pieces the kernel takes for one packet, its header among them.
pub(crate) const MOST_PIECES: usize = libc::UIO_MAXIOV as usize;

/// A VLAN tag stands after the two Ethernet addresses.
const ADDRESS_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// The `virtio_net_hdr`, and after it the VLAN tag to be put into the frame, if any.
type Head = [u8; VNET_HEADER_BYTES + TAG_BYTES];

/// One packet of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Which of the caller's packets it is, or is part of.
    pub(crate) item: usize,
    /// Which of that packet's frames it is; `None`: the packet as given.
    pub(crate) part: Option<usize>,
    /// Its length without the header, in bytes.
    pub(crate) bytes: usize,
    /// How many frames as they had arrived it stands for.
    pub(crate) frames: usize,
    /// What it is to be segmented as.
    pub(crate) gso: Option<GsoKind>,
    tagged: bool,
    first_piece: usize,
    pieces: usize,
}

/// The memory of a batch, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    heads: Vec<Head>,
    pieces: Vec<iovec>,
    list: Vec<Message>,
}

impl Messages {
    /// Room for `messages` packets of `pieces` pieces each; more makes it grow.
    pub(crate) fn with_room(messages: usize, pieces: usize) -> Self {
        Self {
            heads: Vec::with_capacity(messages),
            pieces: Vec::with_capacity(messages * pieces),
            list: Vec::with_capacity(messages),
        }
    }

    /// Begins an empty batch of packets whose pieces live for `'a`.
    pub(crate) fn begin<'s, 'a>(&'s mut self, link: LinkKind) -> Batch<'s, 'a> {
        self.clear();
        Batch { messages: self, link, pieces_of: PhantomData }
    }

    fn clear(&mut self) {
        self.heads.clear();
        self.pieces.clear();
        self.list.clear();
    }
}

/// Packets being collected.
pub(crate) struct Batch<'s, 'a> {
    messages: &'s mut Messages,
    link: LinkKind,
    pieces_of: PhantomData<&'a [u8]>,
}

impl<'s, 'a> Batch<'s, 'a> {
    /// Adds a packet. `false`, and nothing added, when it cannot be said to the kernel: too many
    /// pieces, or a VLAN tag where there is no Ethernet header to put it into.
    pub(crate) fn push<G: Gather<'a>>(
        &mut self,
        packet: G,
        item: usize,
        part: Option<usize>,
    ) -> bool {
        let vlan = packet.vlan();
        if vlan.is_some() && self.link == LinkKind::RawIp {
            return false;
        }
        let first_piece = self.messages.pieces.len();
        // The header's place; it is filled in when all heads are in theirs.
        self.messages.pieces.push(piece(&[]));
        match vlan {
            None => packet.for_each_slice(|slice| self.messages.pieces.push(piece(slice))),
            Some(_) => self.push_tagged_pieces(packet),
        }
        let pieces = self.messages.pieces.len() - first_piece;
        if pieces > MOST_PIECES {
            self.messages.pieces.truncate(first_piece);
            return false;
        }
        let offload = packet.offload();
        self.messages.heads.push(head(VnetHeader::for_packet(offload, tag_bytes(vlan)), vlan));
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

    /// Splits the first slice after the addresses and leaves a place for the tag between.
    fn push_tagged_pieces<G: Gather<'a>>(&mut self, packet: G) {
        let pieces = &mut self.messages.pieces;
        let mut is_first = true;
        packet.for_each_slice(|slice| {
            let split = if is_first { slice.len().min(ADDRESS_BYTES) } else { 0 };
            if is_first {
                pieces.push(piece(&slice[..split]));
                pieces.push(piece(&[]));
            }
            is_first = false;
            pieces.push(piece(&slice[split..]));
        });
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.list.is_empty()
    }

    /// Ends collecting. From here on nothing moves, so the heads can be pointed at.
    pub(crate) fn seal(self) -> Sealed<'s, 'a> {
        let Messages { heads, pieces, list } = &mut *self.messages;
        for (head, message) in heads.iter().zip(list) {
            let (header, tag) = head.split_at(VNET_HEADER_BYTES);
            pieces[message.first_piece] = piece(header);
            if message.tagged {
                pieces[message.first_piece + 2] = piece(tag);
            }
        }
        Sealed { messages: self.messages, pieces_of: PhantomData }
    }
}

/// Packets ready for the kernel.
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
}

impl Drop for Sealed<'_, '_> {
    fn drop(&mut self) {
        // Pointers into packets that may be gone next are not kept.
        self.messages.clear();
    }
}

/// A piece to read from; the kernel's structure knows no difference to one to write to.
fn piece(bytes: &[u8]) -> iovec {
    iovec { iov_base: ptr::from_ref(bytes).cast_mut().cast(), iov_len: bytes.len() }
}

const fn tag_bytes(vlan: Option<VlanTag>) -> u16 {
    if vlan.is_some() { TAG_BYTES as u16 } else { 0 }
}

fn head(header: VnetHeader, vlan: Option<VlanTag>) -> Head {
    let mut head = [0; VNET_HEADER_BYTES + TAG_BYTES];
    head[..VNET_HEADER_BYTES].copy_from_slice(&header.to_bytes());
    if let Some(tag) = vlan {
        head[VNET_HEADER_BYTES..][..2].copy_from_slice(&tag.tpid.get().to_be_bytes());
        head[VNET_HEADER_BYTES + 2..].copy_from_slice(&tag.tci.to_be_bytes());
    }
    head
}
