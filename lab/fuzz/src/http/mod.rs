//! Target `http`: any bytes, in any pieces, from a client of `rxo serve`.
//!
//! These properties must hold: a naive reader can parse every response, and each response fits its request; a
//! body is exactly the requested file, and nothing comes from outside the directory; neither the division of
//! the bytes nor an early end of the client changes a response; the server reads at most one request head
//! ahead, and writes at most one piece of a file at a time.

mod client;
mod directory;
mod reader;
mod script;
mod words;

use std::sync::Arc;
use std::time::Duration;

use rxo_serve::files::Root;
use rxo_serve::{Exchange, Limits};

use self::directory::Directory;
use self::script::{End, Manner};

/// Runs a conversation. The first four bytes select how the client reads, writes and ends; the others, which
/// may stand for words, are its data.
///
/// # Panics
/// If a property does not hold.
pub fn run(data: &[u8]) {
    let Some((manner, text)) = data.split_first_chunk::<4>() else { return };
    directory::with(|directory| {
        let text = words::said(text, directory);
        let (plain, manner) = (Manner::plain(), Manner::of(*manner));
        let whole = talk(&directory.root, &text, plain);
        let cut = talk(&directory.root, &text, manner);
        whole.check(directory);
        cut.check(directory);
        compare(&whole.heard, &cut.heard, manner);
    });
}

/// A finished conversation.
struct Talk {
    heard: Vec<u8>,
    logged: Vec<Exchange>,
}

fn talk(root: &Arc<Root>, text: &[u8], manner: Manner) -> Talk {
    let (heard, logged) = client::talk(root, text, manner);
    Talk { heard, logged }
}

impl Talk {
    /// Checks that every response is complete, and fits its request.
    fn check(&self, directory: &Directory) {
        let mut rest = &self.heard[..];
        let mut is_over = false;
        for what in &self.logged {
            assert!(!is_over, "something follows the last answer");
            if !what.is_complete {
                // An incomplete response is compared with the complete one elsewhere.
                return;
            }
            let (answer, after) = reader::read(rest, what.method == "HEAD");
            assert_eq!(answer.status, what.status);
            assert_eq!(answer.body.len() as u64, what.bytes);
            directory.check(what, &answer);
            is_over = answer.field("Connection") == Some("close");
            rest = after;
        }
        assert!(rest.is_empty(), "an answer to nothing: {}", rest.escape_ascii());
    }
}

/// Checks that dividing the bytes changes nothing. A client that leaves has received a prefix; one that idles
/// gets a final response.
fn compare(whole: &[u8], cut: &[u8], manner: Manner) {
    let (whole, cut) = (without_dates(whole), without_dates(cut));
    if let Some(rest) = cut.strip_prefix(&whole[..]) {
        let is_told = manner.end == End::Dawdles && rest.iter().zip(TOLD).all(|(a, b)| a == b);
        assert!(rest.is_empty() || is_told, "{}", rest.escape_ascii());
    } else {
        assert!(whole.starts_with(&cut), "{}\n{}", whole.escape_ascii(), cut.escape_ascii());
        assert_eq!(cut.len(), manner.takes_bytes, "an answer breaks off");
    }
}

fn without_dates(heard: &[u8]) -> Vec<u8> {
    let mut text = heard.to_vec();
    for at in 0..text.len() {
        if text[at..].starts_with(DATE) {
            let end = text.len().min(at + DATE.len() + DATE_BYTES);
            text[at + DATE.len()..end].fill(b'-');
        }
    }
    text
}

/// Limits of the server. Time passes only while the server waits for an idle client.
const LIMITS: Limits = Limits {
    head_bytes: 1_024,
    head: Duration::from_secs(600),
    idle: Duration::from_secs(600),
    piece: Duration::from_secs(600),
    least_rate: 0,
    linger: Duration::ZERO,
};
const TOLD: &[u8] = b"HTTP/1.1 408 ";
const DATE: &[u8] = b"\nDate: ";
const DATE_BYTES: usize = "Sun, 09 Sep 2001 01:46:40 GMT".len();
