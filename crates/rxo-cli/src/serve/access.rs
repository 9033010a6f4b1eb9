//! The access log of `rxo serve`: a line for each request and its answer.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use rxo_serve::Exchange;
use serde::Serialize;

use crate::numbers::rounded;

/// The log entry of a request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Access {
    /// Time at which the answer was complete, in seconds since 1970 UTC.
    at_s: f64,
    peer: SocketAddr,
    /// The request's method. Like `target`, it is empty if no request could be read.
    method: &'static str,
    target: String,
    status: u16,
    /// Number of bytes of the answer's content that were sent.
    bytes: u64,
    /// `true` if the whole answer was written to the client.
    complete: bool,
    /// Time from the end of the request until the answer was written, in milliseconds.
    ms: f64,
}

impl Access {
    /// Creates the entry of an exchange with `peer` that has just ended.
    pub(super) fn new(peer: SocketAddr, exchange: Exchange) -> Self {
        let Exchange { method, target, status, bytes, is_complete: complete, took } = exchange;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (at_s, ms) = (rounded(since.as_secs_f64(), 3), rounded(took.as_secs_f64() * 1e3, 3));
        Self { at_s, peer, method, target, status, bytes, complete, ms }
    }

    /// Formats the entry as one line of text. Unprintable characters in the request's target are escaped.
    pub(super) fn text(&self) -> String {
        let Self { at_s: _, peer, method, target, status, bytes, complete, ms } = self;
        let target = target.escape_debug();
        let broken = if *complete { "" } else { ", not complete" };
        format!("{peer} {method} {target} {status} {bytes} bytes in {ms:.1} ms{broken}")
    }
}

/// Returns the JSON line with the number of requests that were not logged, because the reader was too slow.
pub(super) fn skipped_json(requests: u64) -> String {
    format!("{{\"skipped\":{requests}}}")
}

/// Returns the plain line with the number of requests that were not logged, because the reader was too slow.
pub(super) fn skipped_text(requests: u64) -> String {
    format!("{requests} requests left out: nobody read their lines, or they could not be written")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        let (target, took) = ("/a\nb\x1b[31m".into(), Duration::from_millis(2));
        let exchange =
            Exchange { method: "GET", target, status: 404, bytes: 5, is_complete: false, took };
        let access = Access::new("10.0.0.2:99".parse().unwrap(), exchange);
        let text = access.text();
        let line = "10.0.0.2:99 GET /a\\nb\\u{1b}[31m 404 5 bytes in 2.0 ms, not complete";
        assert_eq!(text, line);
        let json = serde_json::to_value(&access).unwrap();
        assert_eq!(
            (json["status"].as_u64(), json["peer"].as_str()),
            (Some(404), Some("10.0.0.2:99"))
        );
    }
}
