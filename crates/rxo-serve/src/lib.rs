//! HTTP/1.1 for the files of a directory, sans-IO: a client's bytes go in, the plan of each answer
//! and the file that it needs come out.
//!
//! A [`Conversation`] is one client. Its owner asks it for the next [`Step`], does the step, reports
//! the result and asks again. The owner may be a thread that blocks or an event loop: the
//! conversation never reads, writes or waits, and it takes the time from its owner.
//!
//! The files of the crate, in the order in which a request meets them:
//!
//! * `heads` cuts the client's bytes into request heads, `request` parses one.
//! * `target` maps the request target to names below the directory.
//! * `search` asks for the paths it needs ([`Lookup`]) and turns what is found there ([`Found`]) into
//!   an answer. `conditions` decides by version, `ranges` by byte range, `types` by name; `listing`
//!   renders a directory.
//! * `answer` is the result, `sending` the part of it that is still to be written.
//! * [`files`] opens paths so that none leads out of the directory. It is the only module that
//!   touches the file system, and a conversation does not need it.
//! * [`talk()`] is the loop of an owner that does each step at once.
//!
//! # Contract
//! Outside [`files`] the crate is pure: no input or output, no clock, no thread. Nothing panics,
//! whatever the bytes. A conversation allocates at most one request head, one piece of content
//! ([`PIECE_BYTES`]) and, while it sends the list of a directory, holds its [`Names`], which
//! conversations may share.

mod answer;
mod conditions;
mod conversation;
pub mod files;
mod heads;
mod limits;
mod listing;
mod lookup;
mod names;
mod ranges;
mod refusal;
mod request;
mod search;
mod sending;
mod talk;
mod target;
mod types;

pub use self::conversation::{Conversation, Exchange, Now, Step};
pub use self::limits::{LISTING_BYTES, Limits, PIECE_BYTES};
pub use self::lookup::{Facts, Found, Lookup, Problem};
pub use self::names::Names;
pub use self::talk::{Owner, talk};
