//! Bytes that stand for words which random bytes would rarely form.

use super::directory::Directory;

/// Expands `bytes`: values from 0x80 on stand for words, others for themselves. The input is limited in
/// length.
pub(super) fn said(bytes: &[u8], directory: &Directory) -> Vec<u8> {
    let mut text = Vec::new();
    for &byte in bytes {
        match byte.checked_sub(FIRST).map(usize::from) {
            Some(0) => text.extend_from_slice(directory.tag.as_bytes()),
            Some(1) => text.extend_from_slice(directory.date.as_bytes()),
            Some(2) => text.extend([b'a'; 500]),
            Some(number) if number - 3 < WORDS.len() => {
                text.extend_from_slice(WORDS[number - 3].as_bytes());
            }
            _ => text.push(byte),
        }
        if text.len() > MOST_BYTES {
            break;
        }
    }
    text
}

const FIRST: u8 = 0x80;
const MOST_BYTES: usize = 8 << 10;
const WORDS: [&str; 30] = [
    "GET /",
    "HEAD /",
    " HTTP/1.1\r\nHost: x\r\n",
    " HTTP/1.0\r\n",
    "\r\n",
    "\r\n\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Range: bytes=",
    "If-Range: ",
    "If-Match: ",
    "If-None-Match: ",
    "If-Modified-Since: ",
    "If-Unmodified-Since: ",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "http://x/",
    "hello.txt",
    "large",
    "empty",
    "sub/",
    "page.html",
    "inside",
    "outside",
    "up/",
    "secret",
    "../",
    "%2e%2e/",
    "%2f",
    "many/",
];
