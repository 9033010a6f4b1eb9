//! A naive parser of HTTP responses: RFC 9112 in minimal form, stricter than a client.

use std::borrow::Cow;

/// A response as a client receives it.
#[derive(Debug)]
pub(super) struct Heard<'h> {
    pub(super) status: u16,
    fields: Vec<(&'h str, &'h str)>,
    pub(super) body: Cow<'h, [u8]>,
}

impl<'h> Heard<'h> {
    /// Returns the value of a field; `None` if it is missing.
    pub(super) fn field(&self, name: &str) -> Option<&'h str> {
        self.fields.iter().find(|(this, _)| *this == name).map(|(_, value)| *value)
    }

    /// Returns the value of a field as a number; `None` if it is missing.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name).map(|value| value.parse().expect("a number"))
    }
}

/// Parses the first response in `heard`. Returns it and the bytes after it.
///
/// # Panics
/// If there is no complete, valid response.
pub(super) fn read(heard: &[u8], is_head: bool) -> (Heard<'_>, &[u8]) {
    let end = heard.windows(4).position(|four| four == b"\r\n\r\n").expect("an empty line");
    let head = std::str::from_utf8(&heard[..end]).expect("fields are text");
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    let mut lines = head.split("\r\n");
    assert!(head.split("\r\n").all(|line| line.bytes().all(is_plain)), "{head:?}");
    let status = status_of(lines.next().expect("a status line"));
    let fields: Vec<_> = lines.map(field_of).collect();
    for (at, (name, _)) in fields.iter().enumerate() {
        let is_again = fields[..at].iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        assert!(!is_again, "{name} comes twice");
    }
    let mut answer = Heard { status, fields, body: Cow::Borrowed(&[]) };
    let after = &heard[end + 4..];
    check_fields(&answer);
    let (body, after) = body(&answer, is_head, after);
    answer.body = body;
    (answer, after)
}

fn status_of(line: &str) -> u16 {
    let rest = line.strip_prefix("HTTP/1.1 ").expect("our version");
    let (status, phrase) = rest.split_once(' ').expect("a phrase");
    assert!(status.len() == 3 && !phrase.is_empty(), "{line}");
    status.parse().expect("a status")
}

fn field_of(line: &str) -> (&str, &str) {
    let (name, value) = line.split_once(": ").expect("a field");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    assert!(!name.is_empty() && name.bytes().all(is_name), "{line:?}");
    (name, value)
}

/// Returns the body (RFC 9112, section 6.3), and the bytes after it.
fn body<'h>(answer: &Heard<'_>, is_head: bool, after: &'h [u8]) -> (Cow<'h, [u8]>, &'h [u8]) {
    match (answer.field("Transfer-Encoding"), answer.number("Content-Length")) {
        _ if is_head => (Cow::default(), after),
        (Some("chunked"), None) => unchunked(after),
        (None, Some(bytes)) => {
            let bytes = bytes as usize;
            assert!(after.len() >= bytes, "{bytes} bytes were promised, and {} came", after.len());
            (Cow::Borrowed(&after[..bytes]), &after[bytes..])
        }
        (None, None) if answer.status == 304 => (Cow::default(), after),
        // The end of the connection ends the response.
        (None, None) => {
            assert_eq!((answer.status, answer.field("Connection")), (200, Some("close")));
            (Cow::Borrowed(after), &[])
        }
        both => panic!("two lengths: {both:?}"),
    }
}

/// Decodes chunks (RFC 9112, section 7.1), without extensions and trailers.
fn unchunked(mut rest: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk's length");
        let digits = std::str::from_utf8(&rest[..end]).expect("digits");
        assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits:?}");
        let bytes = usize::from_str_radix(digits, 16).expect("a length");
        rest = &rest[end + 2..];
        body.extend_from_slice(rest.get(..bytes).expect("a whole chunk"));
        rest = rest[bytes..].strip_prefix(b"\r\n").expect("an end of line behind a chunk");
        if bytes == 0 {
            return (Cow::Owned(body), rest);
        }
    }
}

fn check_fields(answer: &Heard<'_>) {
    httpdate::parse_http_date(answer.field("Date").expect("a date")).expect("a date");
    assert_eq!(answer.field("Allow").is_some(), answer.status == 405);
    assert_eq!(answer.field("Content-Range").is_some(), matches!(answer.status, 206 | 416));
    assert_eq!(answer.field("ETag").is_some(), answer.field("Last-Modified").is_some());
    let has_length = answer.field("Content-Length").is_some();
    assert!(!has_length || answer.status != 304, "the client has it: no length");
    assert!(has_length || matches!(answer.status, 200 | 304), "a length is said where one can be");
    if let Some(location) = answer.field("Location") {
        assert!(location.starts_with('/') && !location.starts_with("//"), "{location}");
    }
}
