//! Asking a running process: requests and answers, one line of JSON each, over a unix socket.
//!
//! ```text
//!  rxo ctl ── Session ── line of JSON ──▶ socket ──▶ Server ──▶ Menu ──▶ Entry::answer(process)
//!          ◀──────────── Answer, a line ◀────────────────┘
//! ```
//!
//! From the outside in:
//!
//! * [`Request`] and [`Answer`] are the two directions. Each is a line and a value. `docs/control.md`
//!   describes the lines.
//! * [`Menu`] lists the requests that a process knows and answers them. A request is one [`Entry`]: its name, its
//!   help, and the function that answers. All of this is pure.
//! * [`Page`] is one page over HTTP, for programs that poll it.
//! * `conversation` is one client, sans-IO: bytes and times go in, requests come out, and the time at which the client must be dropped.
//! * [`Server`] is the loop over the clients of a socket, on a thread of its own: of lines, or of a page. [`Session`] is
//!   the other end of lines.
//!
//! # Contract
//! A client costs the process nothing but the server's thread: a line has at most [`MOST_REQUEST_BYTES`], there
//! are at most [`MOST_CLIENTS`] at a time ([`MOST_READERS`] of a page), and one that sends no whole request, or takes no whole answer, within
//! [`PATIENCE`] is dropped. No bytes make it panic. The permissions of the socket decide who may connect.
//!
//! # Examples
//! ```
//! use rxo_control::{Entry, Menu, Request};
//! use serde_json::json;
//!
//! struct Process {
//!     frames: u64,
//! }
//! static ENTRIES: [Entry<Process>; 1] = [Entry {
//!     name: "frames",
//!     usage: "frames",
//!     help: "number of frames",
//!     applies: |_| true,
//!     answer: |process, _request| Ok(json!({ "frames": process.frames })),
//! }];
//!
//! let request = Request { name: "frames".to_owned(), value: None, with: Default::default() };
//! let answer = Menu(&ENTRIES).answer(&Process { frames: 7 }, request.line().as_bytes());
//! assert_eq!(answer.result, Ok(json!({ "frames": 7 })));
//! ```

mod answer;
mod client;
mod conversation;
mod http;
mod menu;
mod request;
mod server;
mod service;

use std::time::Duration;

pub use answer::{Answer, BadAnswer};
pub use client::{AskError, Session};
pub use http::{MOST_READERS, Page};
pub use menu::{Entry, Menu, Refusal};
pub use request::{BadRequest, Request};
pub use server::{Door, Server};

/// The version of the protocol. It changes when a line that was valid would mean something else.
pub const VERSION: u64 = 1;

/// The longest request, in bytes, with its line end.
pub const MOST_REQUEST_BYTES: usize = 4_096;

/// The most clients at a time. A further one is told so, and dropped.
pub const MOST_CLIENTS: usize = 16;

/// The time that a client has to send a request, or to take an answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
