//! Requests of the user to end the run: a stream in which each byte is one request.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

/// The stream by which the user's requests to end the run arrive; `None` once it is closed.
#[derive(Debug)]
pub(super) struct Requests(pub(super) Option<UnixStream>);

impl Requests {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(Some(stream)))
    }

    /// Returns the number of requests to end the run since the last call. Drops the stream once it is closed,
    /// because a closed stream would end every wait at once.
    pub(super) fn count(&mut self) -> usize {
        let Some(mut stream) = self.0.as_ref() else { return 0 };
        // A user does not send more than 16 at once; the rest is read by the next call.
        match stream.read(&mut [0; 16]) {
            Ok(0) => {
                self.0 = None;
                0
            }
            Ok(new) => new,
            // No request is waiting.
            Err(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn after_the_last_request_there_is_nothing_to_wait_for() {
        let (requests, mut ask) = UnixStream::pair().unwrap();
        let mut requests = Requests::new(requests).unwrap();
        assert_eq!(requests.count(), 0);
        ask.write_all(&[0; 2]).unwrap();
        assert_eq!(requests.count(), 2);
        drop(ask);
        assert_eq!((requests.count(), requests.0.is_none()), (0, true));
        assert_eq!(requests.count(), 0);
    }
}
