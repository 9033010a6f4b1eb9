//! The language of packetdrill, as far as TCP scripts need it.
//!
//! Separate from running, so that a script can be parsed, and its mistakes reported, before
//! anything happens. `lexer.rs` makes tokens, `parse/` makes events of them, and the types here
//! represent a script. The grammar is packetdrill's: comments, options (`--name=value`), times,
//! segments in (`<`) and out (`>`), ICMP, calls, shell commands and code. Commands and code are
//! kept as text for the runner.
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
    /// `--name=value`, in order. The value is empty if there is none.
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

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line number, from 1.
    pub line: usize,
    /// When it happens.
    pub time: Time,
    /// The action.
    pub action: Action,
}

/// When something happens.
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
    /// `+1~+2`: between two times after the event before.
    AfterBetween(Duration, Duration),
}

/// The kinds of actions in a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A segment comes in.
    In(Segment),
    /// A segment leaves.
    Out(Segment),
    /// An ICMP message comes in.
    Icmp(Icmp),
    /// The application calls.
    Call(Call),
    /// A shell command.
    Command(String),
    /// A piece of code about the connection's state.
    Code(String),
}

/// A TCP segment, with numbers relative to the first of each side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The ECN field, where it is named.
    pub ecn: Option<Mark>,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.SEQ.
    pub seq: u32,
    /// Payload, in bytes.
    pub text_bytes: u32,
    /// SEG.ACK; `None` if there is neither a number nor the ACK flag.
    pub ack: Option<u32>,
    /// SEG.WND as it stands in the header; `None` is any.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: u16,
    /// Options in order; `None` is any.
    pub options: Option<Vec<SegmentOption>>,
}

/// The ECN field of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `noecn`.
    NotCapable,
    /// `ect0`.
    Capable0,
    /// `ect1`.
    Capable1,
    /// `ect01`: either.
    Capable,
    /// `ce`.
    Congestion,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentOption {
    /// `nop`.
    Nop,
    /// `eol`.
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
    /// Another one, by its kind; only seen in segments that leave.
    Other(u8),
}

/// `icmp unreachable frag_needed mtu 1200 [1:1001(1000)]`: about a segment that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Its type.
    pub kind: String,
    /// Its code, where it has one.
    pub code: Option<String>,
    /// The next hop's MTU.
    pub mtu: Option<u32>,
    /// SEG.SEQ of the segment in question.
    pub seq: Option<u32>,
}

/// A call and what it is to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `...0.2`: it blocks, and returns at that time, counted as the event's own; `None` when it is
    /// not to block.
    pub until: Option<Duration>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// The result that the script expects.
    pub result: Value,
    /// The error's name.
    pub error: Option<String>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `...`: left to the runner.
    Any,
    /// A number, or names of numbers joined by `|`.
    Number(i64),
    /// `"text"`.
    Text(String),
    /// `[1, 2]`.
    List(Vec<Value>),
    /// `{fd=3, events=POLLIN}`.
    Fields(Vec<(String, Value)>),
}

#[cfg(test)]
mod tests;
