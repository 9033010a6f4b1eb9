//! The interface of applications: a handle of the host, streams, listeners. They mirror `std::net`.
//!
//! Separate from the cell because they add waiting. A call of a cell returns that it would block; here that
//! call waits, unless the socket is nonblocking.

mod handle;
mod listener;
mod listening;
mod opener;
mod readiness;
mod stream;
#[cfg(feature = "tokio")]
mod tasks;
mod waiting;

pub use self::handle::Handle;
pub use self::listener::{Incoming, TcpListener};
pub(crate) use self::listening::{Accept, Listening};
pub(crate) use self::opener::{Opener, Shards};
pub use self::readiness::Readiness;
pub use self::stream::TcpStream;
pub(crate) use self::waiting::Waiting;
