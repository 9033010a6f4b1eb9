//! Resolution of paths to files, links and directories, never outside the directory.

use super::*;

#[test]
fn directories_have_an_index_or_are_listed() {
    let scratch = Site::new();
    let www = &scratch.www();
    let listed = get(www, "/", "");
    assert!(status(&listed) == 200 && listed.contains("<a href=\"./sub/\">sub/</a>"), "{listed}");
    let moved = get(www, "//sub", "");
    assert_eq!((status(&moved), field(&moved, "Location")), (301, "/sub/"));
    scratch.file("sub/index.html", b"<p>index");
    let index = get(www, "/sub/", "");
    assert!(field(&index, "Content-Type").starts_with("text/html") && index.ends_with("<p>index"));
    assert_eq!(status(&get(www, "/hello.txt/", "")), 404);
}

#[test]
fn links_are_followed_inside_and_nowhere_else() {
    let scratch = Site::new();
    let www = &scratch.www();
    assert!(get(www, "/inside", "").ends_with("hello, world"));
    for (path, expected) in [
        ("/outside", 403),
        ("/absolute", 403),
        ("/sub/up/secret", 403),
        ("/sub/up/", 403),
        ("/loop", 404),
        ("/../secret", 404),
        ("/%2e%2e/secret", 404),
        ("/sub/../../secret", 404),
        ("/sub/up/../secret", 404),
        ("/..%2fsecret", 404),
        ("/sub/..%00/secret", 400),
    ] {
        let answer = get(www, path, "");
        assert_eq!(status(&answer), expected, "{path}");
        assert!(!answer.contains("the secret"), "{path}");
    }
}

/// RFC 3986, section 5.2.4: dot segments are resolved lexically, within the directory, before any lookup.
#[test]
fn dots_are_resolved_within_the_directory() {
    let scratch = Site::new();
    let www = &scratch.www();
    for path in
        ["/sub/../hello.txt", "/none/../hello.txt", "/../hello.txt", "/sub/up/%2e%2e/../hello.txt"]
    {
        assert!(get(www, path, "").ends_with("hello, world"), "{path}");
    }
    let absolute = heard(www, "GET http://x:80/sub/../hello.txt HTTP/1.2\nHost: y\n\n");
    assert!(status(&absolute) == 200 && absolute.ends_with("hello, world"));
    let moved = get(www, "/sub/deep/../../sub", "");
    assert_eq!((status(&moved), field(&moved, "Location")), (301, "/sub/"));
}

#[test]
fn a_pipe_in_the_directory_stops_nobody() {
    let scratch = Site::new();
    let path = scratch.www().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(status(&get(&scratch.www(), "/pipe", "")), 403);
}
