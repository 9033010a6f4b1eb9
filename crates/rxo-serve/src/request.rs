//! Parses request heads. No input causes a panic.

use httparse::{EMPTY_HEADER, Header, Status};

use crate::authority::is_authority;
use crate::limits::MOST_FIELDS;
use crate::refusal::Refusal;

/// A parsed request for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The request target as the client sent it.
    pub(crate) target: String,
    /// `true` if the client may send more requests over this connection.
    pub(crate) is_persistent: bool,
    /// `true` for HTTP/1.0, in which the answer must state whether the connection is kept.
    pub(crate) is_old: bool,
    pub(crate) conditions: Conditions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
}

/// The values of the header fields that make a request conditional or partial; `None` for fields that were
/// not sent. If a field with a list is repeated, the lists are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) if_modified_since: Option<String>,
    pub(crate) if_unmodified_since: Option<String>,
}

impl Request {
    /// Parses the request head `head`, which includes the empty line.
    ///
    /// # Errors
    /// Returns the answer to send if the head is not a valid request, or if the server does not support the
    /// request. The connection must be closed after this answer, because the start of the next request is
    /// unknown.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, Refusal> {
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(Status::Complete(length)) if length == head.len() => Self::of(&parsed),
            Ok(_) => Err(MALFORMED),
            Err(httparse::Error::TooManyHeaders) => Err(Refusal::new(431, "too many fields")),
            Err(httparse::Error::Version) => match as_http_1_1(head) {
                Some(head) => Self::parse(&head),
                None => Err(Refusal::new(505, "only HTTP/1.1 and HTTP/1.0 are spoken")),
            },
            Err(_) => Err(MALFORMED),
        }
    }

    fn of(parsed: &httparse::Request<'_, '_>) -> Result<Self, Refusal> {
        let fields = Fields(parsed.headers);
        let (method, target) = (parsed.method.unwrap_or(""), parsed.path.unwrap_or(""));
        let is_old = parsed.version == Some(0);
        let hosts = fields.all("host").count();
        // RFC 9112, section 3.2: HTTP/1.1 requires exactly one host, and an invalid host is an error in every
        // version.
        if hosts > 1 || (hosts == 0 && !is_old) || !fields.all("host").all(is_authority) {
            return Err(Refusal::new(400, "one valid Host field is needed"));
        }
        // RFC 9110, section 8.6: an invalid or repeated length must not be guessed.
        let body_bytes =
            fields.body_bytes().ok_or(Refusal::new(400, "Content-Length is one number"))?;
        // A final answer satisfies `100-continue` (RFC 9110, section 10.1.1): bodies are not read.
        if !fields.expects_nothing_else() {
            return Err(Refusal::new(417, "only 100-continue can be expected"));
        }
        let has_body = body_bytes > 0 || fields.all("transfer-encoding").next().is_some();
        let wants_more = if is_old { fields.connection("keep-alive") } else { true };
        Ok(Self {
            method: method_of(method)?,
            target: target.to_owned(),
            // A body is not read, so the next request cannot be found after it.
            is_persistent: wants_more && !fields.connection("close") && !has_body,
            is_old,
            conditions: fields.conditions(),
        })
    }
}

/// Returns `head` with its version replaced by HTTP/1.1 if it is a later version of HTTP/1, because recipients
/// must process both versions in the same way (RFC 9110, section 2.5). `None` for any other version.
fn as_http_1_1(head: &[u8]) -> Option<Vec<u8>> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let [rest @ .., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] = line else {
        return None;
    };
    let mut spoken = head.to_vec();
    spoken[rest.len() + " HTTP/1.".len()] = b'1';
    Some(spoken)
}

fn method_of(name: &str) -> Result<Method, Refusal> {
    match name {
        "GET" => Ok(Method::Get),
        "HEAD" => Ok(Method::Head),
        _ => Err(Refusal::new(405, "only GET and HEAD are served")),
    }
}

/// The header fields of a request, to be looked up by name.
struct Fields<'f>(&'f [Header<'f>]);

impl<'f> Fields<'f> {
    /// Returns the values of all fields with this name, trimmed. A value that is not UTF-8 is empty.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'f str> {
        let is_it = move |field: &&Header<'_>| field.name.eq_ignore_ascii_case(name);
        // No known field has a valid value that is not UTF-8.
        self.0.iter().filter(is_it).map(|field| str::from_utf8(field.value).unwrap_or("").trim())
    }

    fn joined(&self, name: &'static str) -> Option<String> {
        let values: Vec<&str> = self.all(name).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Returns the value of a field that must not be repeated; `None` if it is missing or repeated.
    fn single(&self, name: &'static str) -> Option<String> {
        let mut values = self.all(name);
        let first = values.next()?;
        values.next().is_none().then(|| first.to_owned())
    }

    fn connection(&self, option: &str) -> bool {
        let mut options = self.all("connection").flat_map(|value| value.split(','));
        options.any(|one| one.trim().eq_ignore_ascii_case(option))
    }

    /// Returns the length of the request's body in bytes, 0 without the field `Content-Length`. `None` if the
    /// value is not a number or the field is repeated.
    fn body_bytes(&self) -> Option<u64> {
        let mut values = self.all("content-length");
        let Some(value) = values.next() else { return Some(0) };
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        // Too many digits are an error as well.
        value.parse().ok().filter(|_| is_number && values.next().is_none())
    }

    fn expects_nothing_else(&self) -> bool {
        self.all("expect").all(|value| value.eq_ignore_ascii_case("100-continue"))
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            range: self.single("range"),
            if_range: self.single("if-range"),
            if_match: self.joined("if-match"),
            if_none_match: self.joined("if-none-match"),
            if_modified_since: self.single("if-modified-since"),
            if_unmodified_since: self.single("if-unmodified-since"),
        }
    }
}

const MALFORMED: Refusal = Refusal::new(400, "this is no HTTP request");

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Result<Request, u16> {
        Request::parse(head.replace('\n', "\r\n").as_bytes()).map_err(|refusal| refusal.status)
    }

    #[test]
    fn a_request_that_is_not_served_has_its_status() {
        let rows = [
            ("GET / HTTP/1.1\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nHost: b\n\n", 400),
            ("POST / HTTP/1.1\nHost: a\n\n", 405),
            ("GET / HTTP/2.0\nHost: a\n\n", 505),
            ("GET / HTTP/0.9\nHost: a\n\n", 505),
            ("GET / HTTP/1.10\nHost: a\n\n", 400),
            ("GET / HTTP/1.2\n\n", 400),
            ("GET / HTTP/1.1\nHost:\n\n", 400),
            ("GET / HTTP/1.1\nHost: \n\n", 400),
            ("GET / HTTP/1.1\nHost: a b\n\n", 400),
            ("GET / HTTP/1.1\nHost: a/b\n\n", 400),
            ("GET / HTTP/1.1\nHost: u@a\n\n", 400),
            ("GET / HTTP/1.1\nHost: a:b\n\n", 400),
            ("GET / HTTP/1.1\nHost: ::1\n\n", 400),
            ("GET / HTTP/1.1\nHost: \u{e9}\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nHost: a\n\n", 400),
            ("GET / HTTP/1.0\nHost: a b\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: -1\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: +1\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length:\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: 0x5\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: 5, 5\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: 18446744073709551616\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: 5\nContent-Length: 5\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nContent-Length: 5\nContent-Length: 6\n\n", 400),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: -1\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\nExpect: a-miracle\n\n", 417),
            ("GET / HTTP/1.1\nHost: a\nExpect: 100-continue, b\n\n", 417),
            ("GET  / HTTP/1.1\nHost: a\n\n", 400),
            ("GET / HTTP/1.1\nHost : a\n\n", 400),
            ("\n\n", 400),
        ];
        for (head, status) in rows {
            assert_eq!(parsed(head).unwrap_err(), status, "{head}");
        }
        let many = format!("GET / HTTP/1.1\nHost: a\n{}\n", "A: b\n".repeat(MOST_FIELDS));
        assert_eq!(parsed(&many).unwrap_err(), 431);
    }

    /// RFC 9110, section 2.5: a later version of HTTP/1 is treated like 1.1.
    #[test]
    fn a_later_version_is_served_as_the_one_that_is_known() {
        for version in ["1.2", "1.9"] {
            let request = parsed(&format!("GET /x HTTP/{version}\nHost: a\n\n")).unwrap();
            assert_eq!(request, parsed("GET /x HTTP/1.1\nHost: a\n\n").unwrap());
        }
        let bare = Request::parse(b"GET /x HTTP/1.2\nHost: a\n\n").unwrap();
        assert!(bare.is_persistent && !bare.is_old && bare.target == "/x");
    }

    #[test]
    fn a_hundred_fields_are_no_reason_to_refuse() {
        let fields = "A: b\n".repeat(100);
        let request = parsed(&format!("GET / HTTP/1.1\nHost: a:80\n{fields}Range: x\n\n")).unwrap();
        assert_eq!(request.conditions.range.as_deref(), Some("x"));
    }

    #[test]
    fn version_and_fields_decide_whether_the_client_stays() {
        let rows = [
            ("HTTP/1.1\nHost: a\n\n", true),
            ("HTTP/1.1\nHost: a\nConnection: x, Close\n\n", false),
            ("HTTP/1.0\n\n", false),
            ("HTTP/1.0\nConnection: Keep-Alive\n\n", true),
            ("HTTP/1.1\nHost: a\nContent-Length: 5\n\n", false),
            ("HTTP/1.1\nHost: a\nContent-Length: 0\n\n", true),
            ("HTTP/1.1\nHost: a\nContent-Length: 00\n\n", true),
            ("HTTP/1.1\nHost: a\nContent-Length: 5\nExpect: 100-Continue\n\n", false),
            ("HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n", false),
        ];
        for (rest, is_persistent) in rows {
            let request = parsed(&format!("GET / {rest}")).unwrap();
            assert_eq!(request.is_persistent, is_persistent, "{rest}");
        }
    }

    #[test]
    fn lists_are_joined_and_doubles_ignored() {
        let head = "HEAD /x HTTP/1.1\nhost: a\nIF-NONE-MATCH: \"a\"\nIf-None-Match: W/\"b\"\n\
                    Range: bytes=0-\nRange: bytes=1-\nIf-Range:  \"c\" \n\n";
        let request = parsed(head).unwrap();
        assert_eq!((request.method, &*request.target), (Method::Head, "/x"));
        assert_eq!(request.conditions.if_none_match.as_deref(), Some("\"a\", W/\"b\""));
        assert_eq!(request.conditions.range, None);
        assert_eq!(request.conditions.if_range.as_deref(), Some("\"c\""));
    }
}
