//! HTTP/1.1 for the files of a directory, sans-IO: a client's bytes go in; the plan of each answer, and the
//! file that it needs, come out.
//!
//! ```text
//!  a client's bytes ── received ──▶ ┌──────────────┐ ── next ──▶ Find, List: what to look up
//!  what was found ──── found ─────▶ │ Conversation │ ───────────▶ Write: a head, and which bytes of the file
//!                                   └──────────────┘ ───────────▶ Read, Finish, Drain, Close
//! ```
//!
//! A [`Conversation`] is one client. Its owner calls [`Conversation::next`] for the next [`Step`], performs the
//! step, reports the result and repeats. The owner may be a blocking thread or an event loop: the conversation
//! never reads, writes or waits, and gets the time from its owner.
//!
//! The modules in the order in which a request passes them:
//!
//! * `heads` splits the client's bytes into request heads, `request` parses a head, `authority` validates the
//!   host.
//! * `target` maps the request target to a path below the directory.
//! * `search` requests the paths that it needs ([`Lookup`]) and turns the results ([`Found`]) into an answer.
//!   `conditions` evaluates the version, `ranges` the byte range, `types` the media type; `listing` renders a
//!   directory.
//! * `answer` is the result, `sending` writes it, `drain` waits until it has arrived.
//! * [`files`] opens only paths inside the directory, and reads files so that no answer mixes two versions of a
//!   file. Only this module uses the file system, and a conversation does not depend on it.
//! * [`Server`] is the loop over many conversations.
//!
//! # Contract
//! Outside [`files`] the crate is pure: no input or output, no clock, no thread. No input causes a panic. A
//! conversation allocates at most one request head, one rendered piece ([`LISTING_BYTES`]) and, while it
//! sends the list of a directory, holds its [`Names`], which conversations may share. A conversation that
//! waits for a request has no buffer.
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
pub use self::server::{Client, MOST_DRIVEN, Places, Rules, Server, Text};
