//! Maps file names to media types.
//!
//! The table is written by hand: the crates with such tables contain a thousand types, but fewer than forty are
//! needed.

/// Returns the media type of a file called `name`; `application/octet-stream` if the extension is unknown.
pub(crate) fn of(name: &[u8]) -> &'static str {
    let extension = name.iter().rposition(|&byte| byte == b'.').map(|dot| &name[dot + 1..]);
    let is_it = |(known, _): &&(&str, &str)| {
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case(known.as_bytes()))
    };
    TYPES.iter().find(is_it).map_or(UNKNOWN, |(_, kind)| kind)
}

const UNKNOWN: &str = "application/octet-stream";

const TYPES: [(&str, &str); 38] = [
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("rs", "text/plain; charset=utf-8"),
    ("toml", "text/plain; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("zst", "application/zstd"),
    ("tar", "application/x-tar"),
    ("xz", "application/x-xz"),
    ("pcap", "application/vnd.tcpdump.pcap"),
    ("parquet", "application/vnd.apache.parquet"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/vnd.microsoft.icon"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("woff2", "font/woff2"),
    ("woff", "font/woff"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_counts() {
        let rows = [
            ("a.html", "text/html; charset=utf-8"),
            ("A.PNG", "image/png"),
            ("a.tar.gz", "application/gzip"),
            ("html", UNKNOWN),
            ("a.", UNKNOWN),
            ("", UNKNOWN),
        ];
        for (name, kind) in rows {
            assert_eq!(of(name.as_bytes()), kind, "{name}");
        }
    }
}
