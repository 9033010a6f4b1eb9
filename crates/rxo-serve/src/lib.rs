//! HTTP/1.1 for the files of a directory, sans-IO: a client's bytes go in, the plan of each answer
//! and the file that it needs come out.
//!
//! ```text
//!  a client's bytes ── received ──▶ ┌──────────────┐ ── next ──▶ Find, List: what to look up
//!  what was found ──── found ─────▶ │ Conversation │ ───────────▶ Write: a head, and which bytes of the file
//!                                   └──────────────┘ ───────────▶ Read, Finish, Drain, Close
//! ```
//!
//! A [`Conversation`] is one client. Its owner asks it for the next [`Step`], does the step, reports
//! the result and asks again. The owner may be a thread that blocks or an event loop: the
//! conversation never reads, writes or waits, and it takes the time from its owner.
//!
//! The files of the crate, in the order in which a request meets them:
//!
//! * `heads` cuts the client's bytes into request heads, `request` parses one, `authority` the host that it names.
//! * `target` maps the request target to names below the directory.
//! * `search` asks for the paths it needs ([`Lookup`]) and turns what is found there ([`Found`]) into
//!   an answer. `conditions` decides by version, `ranges` by byte range, `types` by name; `listing`
//!   renders a directory.
//! * `answer` is the result, `sending` the part of it that is still to be written, `drain` what has not arrived.
//! * [`files`] opens paths so that none leads out of the directory, and reads files so that no answer is of
//!   two versions of one. It is the only module that touches the file system, and a conversation does not need
//!   it.
//! * [`Server`] is the loop over many conversations.
//!
//! # Contract
//! Outside [`files`] the crate is pure: no input or output, no clock, no thread. Nothing panics,
//! whatever the bytes. A conversation allocates at most one request head, one piece of what is rendered
//! ([`LISTING_BYTES`]) and, while it sends the list of a directory, holds its [`Names`], which
//! conversations may share. One that waits for a request has no buffer.
//!
//! # Examples
//! ```
//! use std::path::Path;
//! use std::time::{Instant, SystemTime};
//!
//! use rxo_serve::{Conversation, Facts, Found, Limits, Now, Step};
//!
//! let now = || Now { instant: Instant::now(), date: SystemTime::now(), may_stay: true };
//! let mut client = Conversation::new(Limits::default());
//! assert!(matches!(client.next(now()), Step::Read { .. }));
//! client.received(b"GET /hello.txt HTTP/1.1\r\nHost: here\r\n\r\n");
//!
//! let Step::Find(wanted) = client.next(now()) else { panic!("a file is to be found") };
//! assert_eq!(wanted.path, Path::new("hello.txt"));
//! let facts = Facts { bytes: 5, changed: SystemTime::UNIX_EPOCH };
//! client.found(Ok(Found::File(facts)));
//!
//! let Step::Write { bytes, part, .. } = client.next(now()) else { panic!("an answer") };
//! assert!(bytes.starts_with(b"HTTP/1.1 200 OK"));
//! assert_eq!(part.map(|part| (part.from, part.bytes)), Some((0, 5)));
//! ```

mod answer;
mod authority;
mod conditions;
mod conversation;
mod drain;
pub mod files;
mod heads;
mod limits;
mod listing;
mod lookup;
mod names;
mod ranges;
mod refusal;
mod request;
#[cfg(test)]
mod scratch;
mod search;
mod sending;
mod server;
mod target;
mod types;

pub use self::conversation::{Conversation, Exchange, Now, Step};
pub use self::limits::{LISTING_BYTES, Limits, PIECE_BYTES, READ_BYTES};
pub use self::lookup::{Facts, Found, Lookup, Problem};
pub use self::names::Names;
pub use self::sending::Part;
pub use self::server::{Client, MOST_DRIVEN, Rules, Server, Text};
