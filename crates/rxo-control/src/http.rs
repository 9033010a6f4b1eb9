//! Serves one page over HTTP/1.1, for programs that poll it, such as Prometheus.
//!
//! This module is separate from the file server of `rxo serve`: a connection has one request, there is no
//! content negotiation, and the page is generated for each request. Apart from the function that generates the
//! page, the code has no side effects. Contract: no input causes a panic, and only a `GET` of the page
//! generates it.

use crate::conversation::Framing;
use crate::service::Service;

/// A page that is served over HTTP: its path, its media type, and the function that creates its text. If the
/// function fails, the client gets status 503 with the error in one line.
pub struct Page<T> {
    /// The path of the page, such as `/metrics`.
    pub path: &'static str,
    /// The value of the header field `Content-Type`.
    pub content_type: &'static str,
    /// The function that creates the text of the page.
    pub text: T,
}

impl<T> std::fmt::Debug for Page<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

impl<T: FnMut() -> Result<String, String>> Service for Page<T> {
    const FRAMING: Framing = Framing::Head;
    const MOST_CLIENTS: usize = MOST_READERS;

    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        match asked(request) {
            None => refused("400 Bad Request", "this is no request of HTTP/1.1"),
            Some((_, path)) if path != self.path => {
                refused("404 Not Found", &format!("there is only {}", self.path))
            }
            Some((method, _)) if method != "GET" => {
                response("405 Method Not Allowed", PLAIN, "Allow: GET\r\n", "only GET is known\n")
            }
            Some(_) => match (self.text)() {
                Ok(text) => response("200 OK", self.content_type, "", &text),
                Err(why) => refused("503 Service Unavailable", &why),
            },
        }
    }

    fn too_long(&self) -> Vec<u8> {
        refused("431 Request Header Fields Too Large", "send a shorter request")
    }

    fn too_many(&self) -> Vec<u8> {
        refused("503 Service Unavailable", &format!("{MOST_READERS} clients are there"))
    }
}

/// Returns the method and the path of a request; `None` if the request is invalid.
fn asked(request: &[u8]) -> Option<(&str, &str)> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let is_whole = parsed.parse(request).is_ok_and(|status| status.is_complete());
    let target = parsed.path.filter(|_| is_whole)?;
    // The page does not depend on the query.
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    Some((parsed.method?, path))
}

fn refused(status: &str, why: &str) -> Vec<u8> {
    response(status, PLAIN, "", &format!("{why}\n"))
}

fn response(status: &str, content_type: &str, header: &str, text: &str) -> Vec<u8> {
    let bytes = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {bytes}\r\n{header}\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

const PLAIN: &str = "text/plain; charset=utf-8";
const MOST_HEADERS: usize = 64;
/// Maximum number of clients of a page at a time: enough for a few programs that poll it, and for a person.
pub const MOST_READERS: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page() -> Page<impl FnMut() -> Result<String, String>> {
        Page { path: "/metrics", content_type: "text/x", text: || Ok("a 1\n".to_owned()) }
    }

    fn said(request: &str) -> String {
        String::from_utf8(page().answer(request.as_bytes())).unwrap()
    }

    #[test]
    fn the_page_is_given_whole_with_its_length() {
        let rows = ["/metrics", "/metrics?name=a"];
        for target in rows {
            assert_eq!(
                said(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")),
                "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\
                 Connection: close\r\n\r\na 1\n"
            );
        }
    }

    #[test]
    fn everything_else_is_refused_by_its_status() {
        let rows = [
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found", "there is only /metrics"),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", "404 Not Found", "there is only /metrics"),
            ("POST / HTTP/1.1\r\n\r\n", "404 Not Found", "there is only /metrics"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "Allow: GET\r\n"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "Allow: GET\r\n"),
            ("get me the page\r\n\r\n", "400 Bad Request", "no request of HTTP/1.1"),
            ("GET /metrics HTTP/1.1\r\nHost\r\n\r\n", "400 Bad Request", "no request"),
            ("\r\n\r\n", "400 Bad Request", "no request of HTTP/1.1"),
        ];
        for (request, status, text) in rows {
            let said = said(request);
            assert!(said.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {said}");
            assert!(said.contains(text) && !said.contains("a 1"), "{request}: {said}");
        }
    }

    #[test]
    fn a_page_that_cannot_be_made_says_why() {
        let mut page = Page { path: "/", content_type: "", text: || Err("it ends".to_owned()) };
        let said = String::from_utf8(page.answer(b"GET / HTTP/1.1\r\n\r\n")).unwrap();
        assert!(said.starts_with("HTTP/1.1 503 ") && said.ends_with("\r\n\r\nit ends\n"), "{said}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let said = page().answer(&[&bytes, &b"\r\n\r\n"[..]].concat());
            prop_assert!(said.starts_with(b"HTTP/1.1 "));
        }
    }
}
