//! Pages of directories without an index file.

use std::fs::File;

use super::*;
use crate::LISTING_BYTES;

/// Returns the content of the chunks at the start of `text`, and the bytes after the last chunk (RFC 9112,
/// section 7.1).
fn unchunked(mut text: &str) -> (String, &str) {
    let mut content = String::new();
    loop {
        let (size, rest) = text.split_once('\n').unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        content += &rest[..size];
        text = rest[size..].strip_prefix('\n').unwrap();
        if size == 0 {
            return (content, text);
        }
    }
}

/// A page of many names is sent without a length: in chunks, or, to a client without chunked encoding, until
/// the connection closes (RFC 9112, sections 6.1 and 6.3).
#[test]
fn a_page_of_many_names_is_streamed() {
    let scratch = Site::new();
    let www = &scratch.www();
    let names: Vec<String> = (0..3_000).map(|index| format!("many-{index:04}")).collect();
    for name in &names {
        File::create(www.join("sub").join(name)).unwrap();
    }
    let is_whole = |page: &str| {
        let items = names.iter().filter(|name| page.contains(&format!("./{name}\"")));
        items.count() == names.len() && page.ends_with("</ul>\n")
    };
    let next = "GET /empty HTTP/1.1\nHost: x\n\n";
    for at_once in [7, 1 << 20] {
        let text = format!("GET /sub/ HTTP/1.1\nHost: x\n\n{next}");
        let told = heard_in_pieces(www, &text, at_once);
        assert_eq!((status(&told), field(&told, "Transfer-Encoding")), (200, "chunked"));
        let (fields, rest) = told.split_once("\n\n").unwrap();
        assert!(!fields.contains("Content-Length"), "{fields}");
        let (page, after) = unchunked(rest);
        assert!(is_whole(&page) && status(after) == 200, "{after}");
    }
    let head = heard(www, &format!("HEAD /sub/ HTTP/1.1\nHost: x\n\n{next}"));
    assert_eq!((head.matches("HTTP/1.1 200").count(), head.contains("<ul>")), (2, false));

    let old = heard(www, &format!("GET /sub/ HTTP/1.0\nConnection: keep-alive\n\n{next}"));
    assert_eq!(field(&old, "Connection"), "close");
    assert!(!old.contains("chunked") && is_whole(&old) && old.matches("Date: ").count() == 1);
}

/// However many pieces its page has, a directory is read once per request.
#[test]
fn a_directory_is_read_once_for_a_request() {
    let scratch = Site::new();
    for index in 0..2_000 {
        File::create(scratch.www().join(format!("sub/{index:0100}"))).unwrap();
    }
    let talk = conversed(b"GET /sub/ HTTP/1.1\r\nHost: x\r\n\r\n", &scratch.www(), 1 << 20);
    let page = talk.logged[0].bytes as usize;
    assert!(page > 10 * LISTING_BYTES, "{page} bytes are many pieces");
    assert_eq!(talk.listed, 1);
}
