//! The data that a member's connection gets: that of the group, and earlier data that its owner gives again.

use rxo_frame::{Instant, SharedBytes};

use super::member::MemberId;
use super::{Group, GroupEvent};
use crate::{CallError, Connection};

impl Group {
    /// Passes to a connection the data that it may send. After the last byte, closes the connection for
    /// sending.
    pub(super) fn send_available<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
    ) {
        let Self { members, text, nxt, .. } = self;
        let Some(Some(member)) = members.get_mut(id as usize) else { return };
        // A member in catch-up must not overtake the group.
        let until = if member.is_led { text.end() } else { text.end().min(*nxt) };
        while member.given < until
            && let Some(mut piece) = text.piece(member.given, until)
        {
            match connection.send_shared(&mut piece) {
                Ok(lent) => member.given += lent as u64,
                Err(CallError::NotYet) => return,
                // The connection is over.
                Err(_) => return,
            }
            if !piece.is_empty() {
                return;
            }
        }
        let has_all = text.length() == Some(member.given);
        if has_all && !member.is_shut && *nxt > member.given {
            // An error means that the connection is over.
            let _ = connection.shutdown();
            member.is_shut = true;
        }
    }

    /// Asks the owner for data that the group has dropped.
    pub(super) fn ask_for_text<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &Connection<B>,
    ) {
        let first = self.text.first();
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        // Without this check, the same data would be requested again at once while the receiver reads
        // nothing.
        let has_room = connection.send_room() > 0
            && connection.has_much_send_room()
            && connection.unacknowledged_bytes() < CATCH_UP_BYTES / 2;
        if member.given < first && has_room && !member.has_asked && !connection.is_closed() {
            member.has_asked = true;
            let (from, missing) = (member.given, first - member.given);
            let bytes = missing.min(CATCH_UP_BYTES as u64);
            self.events.push_back(GroupEvent::WantsText { id, from, bytes });
        }
    }

    /// Passes requested data to a member's connection, in order; an empty `text` ends the answer. Afterwards
    /// the caller must let the connection send.
    pub fn provide<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        mut text: SharedBytes,
        now: Instant,
    ) {
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        if member.is_led || !member.has_asked {
            return;
        }
        if text.is_empty() {
            (member.has_asked, member.progress.1) = (false, now);
            return;
        }
        while let Ok(lent) = connection.send_shared(&mut text) {
            member.given += lent as u64;
            if text.is_empty() {
                return;
            }
        }
    }
}

/// The number of bytes that are passed at a time to the connection of a receiver in catch-up.
const CATCH_UP_BYTES: usize = 1 << 20;
