//! A naive reader of answers: RFC 9112 in as few words as possible, and stricter than a client.

/// An answer as a client sees it.
#[derive(Debug)]
pub(super) struct Heard<'h> {
    pub(super) status: u16,
    fields: Vec<(&'h str, &'h str)>,
    pub(super) body: &'h [u8],
}

impl<'h> Heard<'h> {
    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&'h str> {
        self.fields.iter().find(|(this, _)| *this == name).map(|(_, value)| *value)
    }

    /// The same as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name).map(|value| value.parse().expect("a number"))
    }
}

/// Reads the first answer of `heard`, and says what follows it.
///
/// # Panics
/// When there is none that is whole and right.
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
    let mut answer = Heard { status, fields, body: &[] };
    let after = &heard[end + 4..];
    let bytes = length(&answer, is_head);
    assert!(after.len() >= bytes, "{bytes} bytes were promised, and {} came", after.len());
    answer.body = &after[..bytes];
    check_fields(&answer);
    (answer, &after[bytes..])
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

/// RFC 9112, section 6.3: what follows the fields.
fn length(answer: &Heard<'_>, is_head: bool) -> usize {
    assert_eq!(answer.field("Transfer-Encoding"), None);
    let said = answer.number("Content-Length");
    assert_eq!(said.is_none(), answer.status == 304, "a length is said where one can be");
    if is_head { 0 } else { said.unwrap_or(0) as usize }
}

fn check_fields(answer: &Heard<'_>) {
    httpdate::parse_http_date(answer.field("Date").expect("a date")).expect("a date");
    assert_eq!(answer.field("Allow").is_some(), answer.status == 405);
    assert_eq!(answer.field("Content-Range").is_some(), matches!(answer.status, 206 | 416));
    assert_eq!(answer.field("ETag").is_some(), answer.field("Last-Modified").is_some());
    if let Some(location) = answer.field("Location") {
        assert!(location.starts_with('/') && !location.starts_with("//"), "{location}");
    }
}
