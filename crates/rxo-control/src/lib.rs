//! Control of a running process: requests and answers, one line of JSON each, over a unix socket.
//!
//! ```text
//!  rxo ctl ── Session ── line of JSON ──▶ socket ──▶ Server ──▶ Menu ──▶ Entry::answer(process)
//!          ◀──────────── Answer, a line ◀────────────────┘
//! ```
//!
//! The modules, from the outside in:
//!
//! * [`Request`] and [`Answer`] are the messages to and from the process. Each can be formatted as a line of
//!   JSON, and parsed from such a line. `docs/control.md` describes the lines.
//! * [`Menu`] lists the requests that a process supports and answers them. A request is one [`Entry`]: its
//!   name, its help, and the function that answers it. These types have no side effects.
//! * [`Page`] is one page over HTTP, for programs that poll it.
//! * `conversation` is the state of one client, sans-IO: bytes and times go in; requests and a deadline come
//!   out.
//! * [`Server`] is the loop over the clients of a socket, on its own thread; it serves either lines or a
//!   page. [`Session`] is the client's end for lines.
//!
//! # Contract
//! A client occupies only the server's thread: a line has at most [`MOST_REQUEST_BYTES`], there are at most
//! [`MOST_CLIENTS`] at a time ([`MOST_READERS`] of a page), and a client that does not complete a request or
//! accept its answer within [`CLIENT_TIMEOUT`] is dropped. No input causes a panic. The permissions of the
//! socket determine who may connect.
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
pub use server::{Listener, Server};

/// The version of the protocol. It changes whenever the meaning of a valid line changes.
pub const VERSION: u64 = 1;

/// Maximum length of a control request, in bytes, including its line end.
pub const MOST_REQUEST_BYTES: usize = 4_096;

/// Maximum number of clients of a control socket at a time. A further client gets an error and is dropped.
pub const MOST_CLIENTS: usize = 16;

/// The time in which a client must send a request, or accept an answer; otherwise it is dropped.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
