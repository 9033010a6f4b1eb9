//! A minimal model of two ends, built only from the segments that pass between them.
//!
//! It observes segments that leave and arrive, and the names of states; it queries no connection. Invariants:
//! no acknowledgement of data that did not arrive; no window edge that moves back; nothing sent beyond the
//! edge received, except the byte of a probe; only transitions of RFC 9293, figure 5.

use rxo_tcp::State;
use rxo_wire::{SeqNumber, TcpFlags};

use super::wire::Wire;

/// The model of both ends.
#[derive(Default)]
pub(crate) struct Model {
    ends: [End; 2],
}

/// One end of the connection, as its peer could know it, and the data that has reached it.
#[derive(Default)]
struct End {
    iss: Option<SeqNumber>,
    /// The window scale in the SYN of this end.
    scale: Option<u8>,
    /// The furthest window edge that this end has sent.
    said: Option<SeqNumber>,
    /// The furthest window edge that this end has received.
    heard: Option<SeqNumber>,
    /// `true` if the peer's SYN has arrived.
    has_syn: bool,
    /// `true` for each byte of the peer's stream that has arrived.
    arrived: Vec<bool>,
    /// The number of bytes that have arrived without a gap.
    in_order: usize,
    /// The position of the peer's FIN in the stream.
    fin: Option<usize>,
    /// `true` if the FIN of this end was sent.
    has_fin_left: bool,
    state: Option<State>,
}

impl Model {
    /// Records that `end` sends the segment `wire`.
    ///
    /// # Panics
    /// Panics if `wire` violates an invariant.
    pub(crate) fn leaves(&mut self, end: usize, wire: &Wire) {
        if wire.flags.contains(TcpFlags::RST) {
            return;
        }
        if wire.flags.contains(TcpFlags::SYN) {
            self.opens(end, wire);
        }
        if wire.flags.contains(TcpFlags::ACK) {
            self.check_ack(end, wire);
            self.check_edge(end, wire);
        }
        self.ends[end].has_fin_left |= wire.flags.contains(TcpFlags::FIN);
        let takes = wire.text.len() + usize::from(wire.flags.contains(TcpFlags::FIN));
        if takes > 0 {
            let heard = self.ends[end].heard.expect("text before a window");
            let beyond = wire.seq + takes as u32 - heard;
            assert!(beyond <= 1, "{beyond} bytes beyond the window");
        }
    }

    /// Records a SYN; a new ISS begins a new connection.
    fn opens(&mut self, end: usize, wire: &Wire) {
        if self.ends[end].iss != Some(wire.seq) {
            let peer = &mut self.ends[1 - end];
            (peer.heard, peer.has_syn, peer.in_order, peer.fin) = (None, false, 0, None);
            peer.arrived.clear();
            (self.ends[end].said, self.ends[end].has_fin_left) = (None, false);
        }
        self.ends[end].iss = Some(wire.seq);
        self.ends[end].scale = wire.options.window_scale;
    }

    fn check_ack(&self, end: usize, wire: &Wire) {
        let me = &self.ends[end];
        let first = self.ends[1 - end].iss.expect("an acknowledgement of nothing") + 1;
        assert!(me.has_syn, "an acknowledgement of a SYN that did not arrive");
        let beyond = wire.ack - (first + me.in_order as u32);
        assert!(beyond <= 0, "{beyond} bytes acknowledged that did not arrive");
    }

    fn check_edge(&mut self, end: usize, wire: &Wire) {
        let (edge, unit) = self.edge(end, wire);
        let said = self.ends[end].said.get_or_insert(edge);
        // A SYN cannot carry a large window (RFC 7323, section 2.2), nor can a repeated one.
        let is_syn = wire.flags.contains(TcpFlags::SYN);
        assert!(is_syn || edge - *said > -unit, "the edge moves back by {}", *said - edge);
        if said.is_before(edge) {
            *said = edge;
        }
    }

    /// Returns the window edge in `wire`, which `end` sends, and the unit in which it can be expressed.
    fn edge(&self, end: usize, wire: &Wire) -> (SeqNumber, i32) {
        let scales = (self.ends[end].scale, self.ends[1 - end].scale);
        let shift = match scales {
            (Some(shift), Some(_)) if !wire.flags.contains(TcpFlags::SYN) => shift.min(14),
            _ => 0,
        };
        (wire.ack + (u32::from(wire.window) << shift), 1 << shift)
    }

    /// Records that `wire` reaches `end`.
    pub(crate) fn arrives(&mut self, end: usize, wire: &Wire) {
        let Some(iss) = self.ends[1 - end].iss else { return };
        let edge = self.edge(1 - end, wire).0;
        let me = &mut self.ends[end];
        me.has_syn |= wire.flags.contains(TcpFlags::SYN) && wire.seq == iss;
        if wire.flags.contains(TcpFlags::ACK) && me.heard.is_none_or(|heard| heard.is_before(edge))
        {
            me.heard = Some(edge);
        }
        // Segments of an older connection lie before the first byte of this one.
        let Ok(start) = usize::try_from(wire.seq - (iss + 1)) else { return };
        me.take(start, wire.text.len(), wire.flags.contains(TcpFlags::FIN));
    }

    /// Returns `true` if `bytes` bytes of the other end have all reached `end`.
    pub(crate) fn has_all(&self, end: usize, bytes: u32) -> bool {
        self.ends[end].in_order >= bytes as usize
    }

    /// Records that `end` is in `state`.
    ///
    /// # Panics
    /// Panics if the transition from the last state is invalid.
    pub(crate) fn is_in(&mut self, end: usize, state: State) {
        let me = &mut self.ends[end];
        let before = me.state.replace(state).unwrap_or(state);
        assert!(leads_to(name(before), name(state), 0), "{before:?} became {state:?}");
        let is_peer_done =
            matches!(state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait);
        let is_last = matches!(state, State::Closing | State::LastAck);
        assert!(me.has_fin_left || !is_last, "{state:?}, and no FIN has left");
        let has_fin = me.fin.is_some_and(|fin| me.in_order > fin);
        assert!(has_fin || !is_peer_done, "{state:?} without the peer's FIN");
    }
}

impl End {
    fn take(&mut self, start: usize, len: usize, has_fin: bool) {
        let end = start + len + usize::from(has_fin);
        self.arrived.resize(self.arrived.len().max(end), false);
        self.arrived[start..end].fill(true);
        if has_fin {
            self.fin = Some(end - 1);
        }
        while self.arrived.get(self.in_order) == Some(&true) {
            self.in_order += 1;
        }
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Closed(_) => "closed",
        State::Listen => "listen",
        State::SynSent(_) => "syn sent",
        State::SynReceived(_) => "syn received",
        State::Established => "established",
        State::FinWait1 => "fin wait 1",
        State::FinWait2 => "fin wait 2",
        State::CloseWait => "close wait",
        State::Closing => "closing",
        State::LastAck => "last ack",
        State::TimeWait => "time wait",
    }
}

/// Returns `true` if the figure has a path from one state to the other; an aggregate may take several steps.
fn leads_to(from: &str, to: &str, steps: usize) -> bool {
    let next: &[&str] = match from {
        "listen" => &["syn received"],
        "syn sent" => &["syn received", "established"],
        "syn received" => &["listen", "established"],
        "established" => &["fin wait 1", "close wait"],
        "fin wait 1" => &["fin wait 2", "closing"],
        "fin wait 2" | "closing" => &["time wait"],
        "close wait" => &["last ack"],
        _ => &[],
    };
    let is_reached = from == to || to == "closed";
    is_reached || steps < 8 && next.iter().any(|next| leads_to(next, to, steps + 1))
}
