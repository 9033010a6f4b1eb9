//! The language of packetdrill, as far as TCP scripts need it.
//!
//! Separate from the runner, so that a script's mistakes are reported before it runs. `lexer.rs` makes
//! tokens, `parse/` makes events of them, and the types here represent a script. The grammar is
//! packetdrill's: comments, options (`--name=value`), times, segments in (`<`) and out (`>`), ICMP, calls,
//! shell commands and code. Commands and code are kept as text for the runner.
//!
//! Contract: no text makes it panic. Every error names its line.

mod lexer;
mod parse;
mod show;

use rxo_frame::Duration;
use rxo_wire::TcpFlags;

pub use self::parse::ScriptError;

/// A script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Options of the form `--name=value`, in order. A missing value is empty.
    pub options: Vec<(String, String)>,
    /// The events, in order.
    pub events: Vec<Event>,
}

impl Script {
    /// Parses `text`.
    ///
    /// # Errors
    /// The first syntax error.
    pub fn read(text: &str) -> Result<Self, ScriptError> {
        parse::script(text)
    }
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line number, from 1.
    pub line: usize,
    /// Time of the event.
    pub time: Time,
    /// Action of the event.
    pub action: Action,
}

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `*`: at any time.
    Any,
    /// `1.5`: this long after the beginning.
    At(Duration),
    /// `+1.5`: this long after the previous event.
    After(Duration),
    /// `1~2`: between two times after the beginning.
    Between(Duration, Duration),
    /// `+1~+2`: between two times after the previous event.
    AfterBetween(Duration, Duration),
}

/// The kinds of actions in a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A segment arrives.
    In(Segment),
    /// A segment leaves.
    Out(Segment),
    /// An ICMP message arrives.
    Icmp(Icmp),
    /// The application makes a call.
    Call(Call),
    /// A shell command.
    Command(String),
    /// Code about the connection's state.
    Code(String),
}

/// A TCP segment, with sequence numbers relative to each side's first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// ECN field of the IP header; `None` if the script does not name it.
    pub ecn: Option<Mark>,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.SEQ.
    pub seq: u32,
    /// Payload length, in bytes.
    pub text_bytes: u32,
    /// SEG.ACK; `None` if there is neither a number nor the ACK flag.
    pub ack: Option<u32>,
    /// SEG.WND, unscaled; `None` permits any.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: u16,
    /// Options in order; `None` permits any.
    pub options: Option<Vec<SegmentOption>>,
}

/// The ECN field of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `noecn`: not ECN-capable.
    NotCapable,
    /// `ect0`: ECN-capable, codepoint ECT(0).
    Capable0,
    /// `ect1`: ECN-capable, codepoint ECT(1).
    Capable1,
    /// `ect01`: ECT(0) or ECT(1).
    Capable,
    /// `ce`: congestion experienced.
    Congestion,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentOption {
    /// `nop`: no-operation.
    Nop,
    /// `eol`: end of the option list.
    End,
    /// `mss 1460`.
    MaximumSegmentSize(u16),
    /// `wscale 8`.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// `sack 1:2 3:4`.
    Sack(Vec<(u32, u32)>),
    /// `TS val 100 ecr 0`.
    Timestamp {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// Another option, by its kind; only in segments that leave.
    Other(u8),
}

/// An ICMP message about a sent segment, such as `icmp unreachable frag_needed mtu 1200 [1:1001(1000)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Name of the message's type.
    pub kind: String,
    /// Name of the message's code; `None` if the type has none.
    pub code: Option<String>,
    /// MTU of the next hop; `None` if the message gives none.
    pub mtu: Option<u32>,
    /// SEG.SEQ of the quoted segment; `None` if the script does not name it.
    pub seq: Option<u32>,
}

/// A call with its expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `...0.2`: the time at which a blocking call returns, in the same form as the event's time; `None` if
    /// it must not block.
    pub until: Option<Duration>,
    /// Name of the call.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Vec<Value>,
    /// Expected return value.
    pub result: Value,
    /// Name of the expected error; `None` for success.
    pub error: Option<String>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `...`: chosen by the runner.
    Any,
    /// A number, or names of numbers joined by `|`.
    Number(i64),
    /// A text in double quotes.
    Text(String),
    /// A list such as `[1, 2]`.
    List(Vec<Value>),
    /// Named fields such as `{fd=3, events=POLLIN}`.
    Fields(Vec<(String, Value)>),
}

#[cfg(test)]
mod tests;
