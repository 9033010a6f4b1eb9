//! The trait for services. A service defines how requests are framed, and answers them.

use crate::conversation::Framing;
use crate::{Answer, MOST_CLIENTS, MOST_REQUEST_BYTES};

/// Answers the requests of a server's clients, one at a time, on the server's thread.
pub(crate) trait Service {
    /// The rule that divides a client's bytes into requests.
    const FRAMING: Framing;
    /// Maximum number of clients of the service at a time.
    const MOST_CLIENTS: usize;

    /// Returns the answer to a complete request, as bytes to be sent.
    fn answer(&mut self, request: &[u8]) -> Vec<u8>;

    /// Returns the answer to a request that is longer than [`MOST_REQUEST_BYTES`].
    fn too_long(&self) -> Vec<u8>;

    /// Returns the error for a client that is refused because there are too many clients.
    fn too_many(&self) -> Vec<u8>;
}

/// A service for requests that are lines of JSON, each answered by a function.
pub(crate) struct Lines<A>(pub(crate) A);

impl<A: FnMut(&[u8]) -> Answer> Service for Lines<A> {
    const FRAMING: Framing = Framing::Lines;
    const MOST_CLIENTS: usize = MOST_CLIENTS;

    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        line(&(self.0)(request))
    }

    fn too_long(&self) -> Vec<u8> {
        refused(format!("a line may have {MOST_REQUEST_BYTES} bytes; send a shorter one"))
    }

    fn too_many(&self) -> Vec<u8> {
        refused(format!("{MOST_CLIENTS} clients are there; end one, or ask again later"))
    }
}

fn refused(error: String) -> Vec<u8> {
    line(&Answer { request: String::new(), result: Err(error) })
}

fn line(answer: &Answer) -> Vec<u8> {
    format!("{}\n", answer.line()).into_bytes()
}
