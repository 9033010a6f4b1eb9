//! Netlink: reads and changes the kernel's network configuration, one request and its answer at a time.
//!
//! ```text
//!  Request::new(kind, header).attribute(..) ─┬▶ Netlink::change ──▶ done, or the kernel's error
//!                                            ├▶ Netlink::ask    ──▶ an object  ─┬▶ attributes(..)
//!                                            └▶ Netlink::dump   ──▶ all objects ┘
//! ```
//!
//! * [`Request`] builds a message: a fixed header, such as `ifinfomsg`, and attributes.
//! * [`Netlink`] is a socket that sends requests and reads their answers.
//! * [`Notices`] is a socket that only receives: the kernel reports every change through it, whoever made the
//!   change.
//! * [`attributes`], [`attribute`], [`u32_at`] and [`u64_at`] parse the objects in an answer.
//!
//! Attributes are not interpreted: their types are the constants of `libc` and of the kernel's headers, and
//! their values are bytes. So a caller that copies an object copies every attribute, even unknown ones.
//!
//! # Contract
//! A request is sent as a whole, and its answer is read to the end before the next request. An incomplete
//! answer is an error. No bytes cause a panic; parsing stops at an invalid length.
//!
//! # Examples
//! Prints the names of all interfaces:
//! ```
//! use rxo_netlink::{Netlink, Request, attribute};
//!
//! const HEADER_BYTES: usize = 16; // struct ifinfomsg
//!
//! let request = Request::new(libc::RTM_GETLINK, &[0; HEADER_BYTES]);
//! for link in Netlink::route()?.dump(&request)? {
//!     let name = attribute(&link[HEADER_BYTES..], libc::IFLA_IFNAME).unwrap_or_default();
//!     println!("{}", String::from_utf8_lossy(name));
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod message;
mod notices;
mod socket;

pub use message::{Notice, Request, attribute, attributes, nested, u32_at, u64_at};
pub use notices::Notices;
pub use socket::Netlink;
