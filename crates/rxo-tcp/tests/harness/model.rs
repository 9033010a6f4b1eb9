//! What two ends may do, told from what passes between them: the simplest account of each, kept from
//! outside.
//!
//! It looks at segments that leave and arrive, and at names of states; nothing is asked of a connection.
//! What must hold: no acknowledgement of what did not arrive; a window's edge that does not move back;
//! nothing sent beyond the edge that was heard, but for the byte of a probe; only changes of state that
//! RFC 9293, figure 5, has.

use rxo_tcp::State;
use rxo_wire::{SeqNumber, TcpFlags};

use super::wire::Wire;

/// Both ends.
#[derive(Default)]
pub(crate) struct Model {
    ends: [End; 2],
}

/// One end, as its peer could know it, and what has reached it.
#[derive(Default)]
struct End {
    iss: Option<SeqNumber>,
    /// The scale in its SYN.
    scale: Option<u8>,
    /// The furthest edge that it has said.
    said: Option<SeqNumber>,
    /// The furthest edge that it has heard.
    heard: Option<SeqNumber>,
    /// The peer's SYN has arrived.
    has_syn: bool,
    /// Which of the peer's bytes have arrived, counted from the first.
    arrived: Vec<bool>,
    /// How many of them without a gap.
    in_order: usize,
    /// Where the peer's FIN stands.
    fin: Option<usize>,
    /// Its own FIN has left.
    has_fin_left: bool,
    state: Option<State>,
}

impl Model {
    /// `wire` leaves `end`.
    ///
    /// # Panics
    /// When it may not.
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

    /// A SYN; a new number is a new connection.
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
        // A SYN cannot say a large window (RFC 7323, section 2.2), also when it is repeated.
        let is_syn = wire.flags.contains(TcpFlags::SYN);
        assert!(is_syn || edge - *said > -unit, "the edge moves back by {}", *said - edge);
        if said.is_before(edge) {
            *said = edge;
        }
    }

    /// The edge that `wire` of `end` says, and in which steps it can be said.
    fn edge(&self, end: usize, wire: &Wire) -> (SeqNumber, i32) {
        let scales = (self.ends[end].scale, self.ends[1 - end].scale);
        let shift = match scales {
            (Some(shift), Some(_)) if !wire.flags.contains(TcpFlags::SYN) => shift.min(14),
            _ => 0,
        };
        (wire.ack + (u32::from(wire.window) << shift), 1 << shift)
    }

    /// `wire` reaches `end`.
    pub(crate) fn arrives(&mut self, end: usize, wire: &Wire) {
        let Some(iss) = self.ends[1 - end].iss else { return };
        let edge = self.edge(1 - end, wire).0;
        let me = &mut self.ends[end];
        me.has_syn |= wire.flags.contains(TcpFlags::SYN) && wire.seq == iss;
        if wire.flags.contains(TcpFlags::ACK) && me.heard.is_none_or(|heard| heard.is_before(edge))
        {
            me.heard = Some(edge);
        }
        // What comes of an older connection lies before the first byte of this.
        let Ok(start) = usize::try_from(wire.seq - (iss + 1)) else { return };
        me.take(start, wire.text.len(), wire.flags.contains(TcpFlags::FIN));
    }

    /// Whether `bytes` that the other wrote have all reached `end`.
    pub(crate) fn has_all(&self, end: usize, bytes: u32) -> bool {
        self.ends[end].in_order >= bytes as usize
    }

    /// `end` is in `state`.
    ///
    /// # Panics
    /// When it cannot have come there.
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

/// Whether the figure has a way from one to the other; an aggregate may take several steps.
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
