//! What applications have: a handle on the host, streams, listeners. They mirror `std::net`.
//!
//! Separate from the cell because of what they add: waiting. A call of a cell says that it would
//! block; here that means to wait, unless the application wants it otherwise.

mod handle;
mod listener;
mod listening;
mod stream;
mod waiting;

pub use self::handle::Handle;
pub(crate) use self::handle::Opener;
pub use self::listener::{Incoming, TcpListener};
pub(crate) use self::listening::{Accept, Listening};
pub use self::stream::TcpStream;
pub(crate) use self::waiting::Waiting;
