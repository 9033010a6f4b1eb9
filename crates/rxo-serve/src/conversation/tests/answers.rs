//! Answers to requests for files and parts of files, and to invalid requests.

use super::*;

#[test]
fn a_file_is_given_with_what_is_known_of_it() {
    let scratch = Site::new();
    let answer = get(&scratch.www(), "/hello.txt?x=1", "");
    assert_eq!(status(&answer), 200);
    assert_eq!(field(&answer, "Content-Length"), "12");
    assert_eq!(field(&answer, "Content-Type"), "text/plain; charset=utf-8");
    assert_eq!(field(&answer, "Last-Modified"), "Sun, 09 Sep 2001 01:46:40 GMT");
    assert_eq!(field(&answer, "Accept-Ranges"), "bytes");
    assert!(answer.ends_with("\n\nhello, world") && !answer.contains("Connection"), "{answer}");
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let scratch = Site::new();
    let text = "GET /hello.txt HTTP/1.1\nHost: x\n\nHEAD /hello.txt HTTP/1.1\nHost: x\n\n\
                GET /nothing HTTP/1.1\nHost: x\n\nGET /empty HTTP/1.1\nHost: x\nConnection: close\n\n\
                GET /never HTTP/1.1\nHost: x\n\n";
    let whole = heard(&scratch.www(), text);
    let answers: Vec<u16> =
        whole.match_indices("HTTP/1.1 ").map(|(at, _)| status(&whole[at..])).collect();
    assert_eq!(answers, [200, 200, 404, 200]);
    assert_eq!(whole.matches("hello, world").count(), 1, "HEAD has no content: {whole}");
    assert!(whole.contains("Content-Length: 0\nConnection: close\n\n"), "{whole}");
    for at_once in [1, 7, 100] {
        let again = heard_in_pieces(&scratch.www(), text, at_once);
        assert_eq!(without_dates(&again), without_dates(&whole), "{at_once}");
    }
}

fn without_dates(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("Date: ")).collect()
}

#[test]
fn ranges_and_versions() {
    let scratch = Site::new();
    let www = &scratch.www();
    let tag = field(&get(www, "/hello.txt", ""), "ETag").to_owned();
    let part = get(www, "/hello.txt", &format!("Range: bytes=7-\nIf-Range: {tag}\n"));
    assert_eq!((status(&part), field(&part, "Content-Range")), (206, "bytes 7-11/12"));
    assert!(part.ends_with("\n\nworld"));
    let behind = get(www, "/hello.txt", "Range: bytes=12-\n");
    assert_eq!((status(&behind), field(&behind, "Content-Range")), (416, "bytes */12"));
    let several = get(www, "/hello.txt", "Range: bytes=0-0,2-3\n");
    assert!(status(&several) == 200 && several.ends_with("hello, world"));
    let other = get(www, "/hello.txt", "Range: bytes=7-\nIf-Range: \"x\"\n");
    assert!(status(&other) == 200 && other.ends_with("hello, world"));
    let known = get(www, "/hello.txt", &format!("If-None-Match: {tag}\n"));
    assert!(status(&known) == 304 && known.ends_with("\n\n"), "{known}");
    assert!(!known.contains("Content-Length"));
    let since = get(www, "/hello.txt", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\n");
    assert_eq!(status(&since), 304);
    assert_eq!(status(&get(www, "/hello.txt", "If-Match: \"x\"\n")), 412);
    assert_eq!(status(&get(www, "/empty", "Range: bytes=0-\n")), 416);
}

#[test]
fn a_large_file_comes_whole() {
    let scratch = Site::new();
    scratch.file("large", &large());
    let text = b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for at_once in [1_000, 1 << 20] {
        let talk = conversed(text, &scratch.www(), at_once);
        assert!(talk.heard.ends_with(&large()));
        assert_eq!((talk.logged[0].bytes, talk.logged[0].is_complete), (300_001, true));
    }
}

/// Returns a length that is not a multiple of the piece size.
fn large() -> Vec<u8> {
    (0..300_001_u32).map(|number| (number % 251) as u8).collect()
}

#[test]
fn a_head_that_is_no_request_ends_the_conversation() {
    let scratch = Site::new();
    let www = &scratch.www();
    let next = "GET /hello.txt HTTP/1.1\nHost: x\n\n";
    let rows = [
        ("nonsense\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc", 405),
        ("GET / HTTP/3.0\n\n", 505),
        (&*format!("GET /{} HTTP/1.1\n", "a".repeat(20_000)), 431),
    ];
    for (text, expected) in rows {
        let answer = heard(www, &format!("{text}{next}"));
        assert_eq!((status(&answer), field(&answer, "Connection")), (expected, "close"), "{text}");
        assert_eq!(answer.matches("Date: ").count(), 1, "{answer}");
    }
    assert_eq!(field(&get(www, "/", "Content-Length: 9\n"), "Connection"), "close");
    let old = heard(www, "GET /empty HTTP/1.0\nConnection: keep-alive\n\nGET /empty HTTP/1.0\n\n");
    assert_eq!(old.matches("Connection: keep-alive").count(), 1, "{old}");
    assert_eq!(old.matches("Connection: close").count(), 1, "{old}");
}
