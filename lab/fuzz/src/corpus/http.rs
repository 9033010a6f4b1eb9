//! Requests of `rxo serve`'s clients: every method, conditions, path traversal, and invalid bytes.

use rxo_testkit::Random;

/// Placeholder for the entity tag of `hello.txt`; the next constant is one for its modification date.
const TAG: char = '\u{1}';
const DATE: char = '\u{2}';

/// The plain client: reading, writing, ending and capacity without limits.
const PLAIN: [u8; 4] = [0; 4];

/// Returns every conversation.
pub(super) fn conversations() -> Vec<(String, Vec<u8>)> {
    let named = [
        ("file", PLAIN, request("GET", "/hello.txt", "")),
        ("large-in-pieces", [1, 200, 4, 0], request("GET", "/large", "")),
        ("head", [3, 1, 0, 0], request("HEAD", "/large", "") + &request("GET", "/empty", "")),
        ("pipelined", [7, 0, 0, 0], ["/hello.txt", "/", "/nothing"].map(get).concat()),
        (
            "folders",
            PLAIN,
            ["/sub", "/sub/", "/sub/deep/", "/odd%20n", "/odd%20n/"].map(get).concat(),
        ),
        ("ways-out", PLAIN, ways_out()),
        ("ranges", [0, 9, 0, 0], ranges()),
        ("versions", PLAIN, versions()),
        (
            "old",
            PLAIN,
            "GET /empty HTTP/1.0\nConnection: keep-alive\n\nGET / HTTP/1.0\n\n".to_owned(),
        ),
        ("close", PLAIN, request("GET", "/", "Connection: close\n") + &get("/never")),
        ("body", PLAIN, request("POST", "/", "Content-Length: 3\n") + "abc"),
        (
            "address",
            PLAIN,
            get("http://x/hello.txt?a=b")
                + &get("HTTP://x")
                + &get("ftp://x/")
                + &get("http://u@x/"),
        ),
        ("empty-lines", [2, 0, 1, 0], "\n\n\n".to_owned() + &get("/hello.txt") + "\n\n"),
        ("dawdles", [5, 0, 1, 0], get("/hello.txt") + "GET / HT"),
        ("gone", [5, 0, 2, 0], get("/hello.txt") + "GET / HT"),
        ("takes-little", [0, 3, 4, 40], get("/large")),
        ("too-long", [100, 0, 0, 0], format!("GET /{} HTTP/1.1\n\n", "a".repeat(3_000))),
        ("many-fields", PLAIN, request("GET", "/", &"a: b\n".repeat(140))),
        ("nonsense", PLAIN, "nonsense\n\n".to_owned()),
        ("many-names", PLAIN, get("/many/") + &request("HEAD", "/many/", "") + &get("/empty")),
        ("many-names-in-pieces", [9, 90, 4, 0], get("/many/") + &get("/hello.txt")),
        ("many-names-old", PLAIN, "GET /many/ HTTP/1.0\nConnection: keep-alive\n\n".to_owned()),
    ];
    let mut files: Vec<(String, Vec<u8>)> = named
        .into_iter()
        .map(|(name, manner, text)| (name.to_owned(), [&manner[..], &said(&text)].concat()))
        .collect();
    for seed in 0..3 {
        let mut random = Random::new(seed);
        // Only bytes that stand for words.
        let bytes = (0..200).map(|_| random.next() as u8 | 0x80).collect();
        files.push((format!("random-{seed}"), bytes));
    }
    files
}

fn get(path: &str) -> String {
    request("GET", path, "")
}

fn request(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\nHost: x\n{fields}\n")
}

fn ways_out() -> String {
    let paths = [
        "/outside",
        "/absolute",
        "/sub/up/secret",
        "/loop",
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/sub/..%00/secret",
        "/sub/../hello.txt",
        "/sub/deep//../../%2e%2e/..",
        "/inside",
        "/hello.txt/",
    ];
    paths.map(get).concat()
}

fn ranges() -> String {
    let ranges = ["7-", "-5", "0-0", "12-", "5-2", "0-0,2-3", "-", "99999999999999999999-"];
    ranges.map(|range| request("GET", "/hello.txt", &format!("Range: bytes={range}\n"))).concat()
}

fn versions() -> String {
    let conditions = [
        format!("If-None-Match: {TAG}\n"),
        format!("If-Match: {TAG}\nRange: bytes=2-3\nIf-Range: {TAG}\n"),
        format!("If-Modified-Since: {DATE}\n"),
        format!("If-Unmodified-Since: {DATE}\nIf-Range: {DATE}\nRange: bytes=0-3\n"),
        "If-Match: \"x\"\n".to_owned(),
        "If-None-Match: *\n".to_owned(),
    ];
    conditions.map(|fields| request("GET", "/hello.txt", &fields)).concat()
}

/// Encodes `text` as the target reads it: LF becomes CR LF, and tag and date become words.
fn said(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for character in text.chars() {
        match character {
            '\n' => bytes.extend(b"\r\n"),
            TAG => bytes.push(0x80),
            DATE => bytes.push(0x81),
            other => bytes.push(other as u8),
        }
    }
    bytes
}
