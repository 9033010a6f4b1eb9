//! Conversations in memory, with a real directory and a time that only the test advances.

mod answers;
mod any_bytes;
mod deadlines;
mod lists;
mod paths;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::PIECE_BYTES;
use crate::READ_BYTES;
use crate::files::{DiskWait, Opened, Pages, Root};
use crate::scratch::Scratch;

/// A directory with files, next to a secret file outside it.
struct Site(Scratch);

impl Site {
    fn new() -> Self {
        let folder = Scratch::empty();
        let www = folder.path().join("www");
        fs::create_dir_all(www.join("sub/deep")).unwrap();
        folder.file("secret", SECRET);
        let site = Self(folder);
        site.file("hello.txt", b"hello, world");
        site.file("empty", b"");
        site.file("sub/page.html", b"<p>page");
        symlink("hello.txt", www.join("inside")).unwrap();
        symlink("../secret", www.join("outside")).unwrap();
        symlink("../..", www.join("sub/up")).unwrap();
        symlink(www.join("hello.txt"), www.join("absolute")).unwrap();
        symlink("loop", www.join("loop")).unwrap();
        site
    }

    fn www(&self) -> PathBuf {
        self.0.path().join("www")
    }

    /// Creates a file whose last change was long ago.
    fn file(&self, name: &str, bytes: &[u8]) {
        self.0.file(&format!("www/{name}"), bytes);
    }
}

const SECRET: &[u8] = b"the secret that is not served";

/// The bytes received, the exchanges logged, and the number of times that a directory was read.
#[derive(Debug, Default)]
struct Talk {
    heard: Vec<u8>,
    logged: Vec<Exchange>,
    listed: u32,
}

fn now() -> Now {
    Now { instant: Instant::now(), date: SystemTime::now(), may_stay: true }
}

/// Runs a conversation with a client that sends `text`; reads and writes at most `at_once` bytes at a time.
fn conversed(mut text: &[u8], www: &Path, at_once: usize) -> Talk {
    let (root, mut talk) = (Root::open(www).unwrap(), Talk::default());
    let (mut opened, mut pages) = (Opened::default(), Pages::new(1 << 20));
    let mut conversation = Conversation::new(Limits::default());
    loop {
        match conversation.next(now()) {
            Step::Read { .. } => {
                let (read, later) = text.split_at(text.len().min(at_once).min(READ_BYTES));
                conversation.received(read);
                text = later;
            }
            Step::Find(lookup) => {
                conversation.found(opened.find(&root, &lookup, DiskWait::Waits).unwrap());
            }
            Step::List => {
                talk.listed += 1;
                conversation.listed(opened.names(&root));
            }
            Step::Write { bytes, part, .. } => {
                assert!(bytes.len() <= PIECE_BYTES, "{}", bytes.len());
                let mut piece = bytes.to_vec();
                if let Some(part) = part {
                    let piece_bytes = PIECE_BYTES as u64;
                    let index = part.from / piece_bytes;
                    let page = opened.page(&mut pages, index, SystemTime::now(), DiskWait::Waits);
                    let page = page.unwrap().unwrap();
                    let from = (part.from % piece_bytes) as usize;
                    piece.extend_from_slice(&page[from..from + part.bytes]);
                }
                piece.truncate(at_once);
                talk.heard.extend_from_slice(&piece);
                conversation.on_written(piece.len());
            }
            Step::Answered(exchange) => {
                opened.close();
                talk.logged.push(exchange);
            }
            Step::Finish => {}
            Step::Drain { .. } | Step::Reset => unreachable!("nothing is on its way"),
            Step::Close => return talk,
        }
    }
}

/// Returns the answer to a client that sends `text`, `at_once` bytes at a time. Converts between LF and CR
/// LF.
fn heard_in_pieces(www: &Path, text: &str, at_once: usize) -> String {
    let talk = conversed(text.replace('\n', "\r\n").as_bytes(), www, at_once);
    String::from_utf8_lossy(&talk.heard).replace("\r\n", "\n")
}

fn heard(www: &Path, text: &str) -> String {
    heard_in_pieces(www, text, 1 << 20)
}

/// Returns the answer to one GET request with these header fields.
fn get(www: &Path, target: &str, fields: &str) -> String {
    heard(www, &format!("GET {target} HTTP/1.1\nHost: x\n{fields}\n"))
}

fn status(answer: &str) -> u16 {
    answer[9..12].parse().unwrap()
}

fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let mut lines = answer.split("\n\n").next().unwrap().lines();
    let line = lines.find(|line| line.starts_with(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {answer}")).split_once(": ").unwrap().1
}
