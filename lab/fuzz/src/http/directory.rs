//! A directory to serve, a secret beside it, and the content that each path must lead to.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use rxo_serve::files::Root;
use rxo_serve::{Exchange, PIECE_BYTES};

use super::reader::{self, Heard};
use super::script::Manner;
use super::talk;

/// The served directory. It exists until this is dropped.
pub(super) struct Directory {
    pub(super) root: Arc<Root>,
    /// Entity tag of `hello.txt`; the next field is its modification date.
    pub(super) tag: String,
    pub(super) date: String,
    files: Vec<(String, Vec<u8>)>,
    /// Names of the files in [`MANY`].
    many: Vec<String>,
    _scratch: Scratch,
}

thread_local! {
    static DIRECTORY: Directory = Directory::new();
}

/// Calls `act` with this thread's directory, which is made only once because that costs more than a run.
pub(super) fn with(act: impl FnOnce(&Directory)) {
    DIRECTORY.with(act);
}

/// Directories and their entries, links included. Those with an index are not listed, nor is [`MANY`].
const FOLDERS: [(&str, &[&str]); 3] = [
    (
        "",
        &[
            "absolute",
            "empty",
            "hello.txt",
            "inside",
            "large",
            "loop",
            "many/",
            "odd%20n/",
            "outside",
            "sub/",
        ],
    ),
    ("sub", &["deep/", "page.html", "up"]),
    ("sub/deep", &[]),
];
const INDEXED: &str = "odd n";
/// Directory whose listing exceeds one piece.
const MANY: &str = "many";

impl Directory {
    fn new() -> Self {
        let large = (0..PIECE_BYTES + 1_000).map(|at| (at % 251) as u8).collect();
        let named = [
            ("hello.txt", b"hello, world".to_vec()),
            ("inside", b"hello, world".to_vec()),
            ("empty", Vec::new()),
            ("large", large),
            ("sub/page.html", b"<p>page".to_vec()),
            ("odd n/index.html", b"<p>index".to_vec()),
        ];
        let many: Vec<String> =
            (10..70).map(|number| format!("{number}{}", "é".repeat(120))).collect();
        let of_many = many.iter().map(|name| (format!("{MANY}/{name}"), Vec::new()));
        let files = named.map(|(name, bytes)| (name.to_owned(), bytes)).into_iter();
        let files: Vec<_> = files.chain(of_many).collect();
        let scratch = Scratch::new();
        scratch.fill(&files).expect("a place for files");
        let root = Arc::new(Root::open(&scratch.0.join("www")).expect("a directory to serve"));
        let asked = talk(&root, b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n", Manner::plain());
        let (answer, _) = reader::read(&asked.heard, false);
        let field = |name| answer.field(name).expect("what is known of a file").to_owned();
        let (tag, date) = (field("ETag"), field("Last-Modified"));
        Self { root, tag, date, files, many, _scratch: scratch }
    }

    /// Checks that the response is one that the request may get.
    pub(super) fn check(&self, what: &Exchange, answer: &Heard<'_>) {
        let path = path_of(&what.target);
        let file = path.as_ref().and_then(|path| self.file(path));
        match (answer.status, file) {
            (200 | 206, Some(content)) => check_file(what, answer, content),
            (200, None) => {
                self.check_listing(what, answer, &path.expect("a path that is served"));
            }
            (301, _) => {
                let path = path.expect("a path that is served");
                assert!(!path.ends_with('/') && is_folder(&path), "{path}");
            }
            (304 | 412 | 416, file) => assert!(file.is_some(), "{}", what.target),
            (403 | 404, Some(_)) => panic!("{} is not given", what.target),
            (400 | 403 | 404 | 405 | 408 | 431 | 505, _) => {}
            (status, _) => panic!("{status} for {:?}", what.target),
        }
        if answer.status >= 400 && !answer.body.is_empty() {
            assert!(answer.body.starts_with(format!("{} ", answer.status).as_bytes()));
        }
    }

    /// Returns the file that `path` leads to, or the index of a directory; `None` if there is neither.
    fn file(&self, path: &str) -> Option<&[u8]> {
        let index = path.strip_suffix('/').map(|folder| format!("{folder}/index.html"));
        let path = index.as_deref().unwrap_or(path);
        self.files.iter().find(|(known, _)| *known == path).map(|(_, content)| &content[..])
    }

    fn check_listing(&self, what: &Exchange, answer: &Heard<'_>, path: &str) {
        assert!(path.is_empty() || path.ends_with('/'), "{path}");
        let folder = path.trim_end_matches('/');
        let is_long = folder == MANY;
        assert_eq!(answer.field("Content-Length").is_none(), is_long, "{path}");
        if what.method == "HEAD" {
            return;
        }
        let names = self.names(folder);
        let page = std::str::from_utf8(&answer.body).expect("a page is text");
        for name in &names {
            assert!(page.contains(&format!("<a href=\"./{name}\">")), "{name} is not in {page}");
        }
        let up = usize::from(!folder.is_empty());
        assert_eq!(page.matches("<a href=").count(), names.len() + up, "{page}");
    }

    /// Returns the names in a directory, as escaped in URLs.
    fn names(&self, folder: &str) -> Vec<String> {
        if folder == MANY {
            return self.many.iter().map(|name| name.replace('é', "%C3%A9")).collect();
        }
        let names = FOLDERS.into_iter().find(|(known, _)| *known == folder);
        let (_, names) = names.expect("a directory");
        names.iter().map(|&name| name.to_owned()).collect()
    }
}

fn check_file(what: &Exchange, answer: &Heard<'_>, content: &[u8]) {
    assert!(answer.field("ETag").is_some() && answer.field("Accept-Ranges") == Some("bytes"));
    let part = match answer.field("Content-Range") {
        None => content,
        Some(range) => {
            let range = range.strip_prefix("bytes ").expect("a range of bytes");
            let (range, whole) = range.split_once('/').expect("the whole length");
            assert_eq!(whole, content.len().to_string());
            let (first, last) = range.split_once('-').expect("from and to");
            let number = |text: &str| text.parse::<usize>().expect("a number");
            &content[number(first)..=number(last)]
        }
    };
    assert_eq!(answer.number("Content-Length"), Some(part.len() as u64));
    assert!(what.method == "HEAD" || *answer.body == *part, "other bytes than {}", what.target);
}

fn is_folder(path: &str) -> bool {
    [INDEXED, MANY].contains(&path) || FOLDERS.iter().any(|(known, _)| *known == path)
}

/// Returns the decoded path of a target, ending with `/` if only a directory can be meant; `None` if it is
/// invalid.
fn path_of(target: &str) -> Option<String> {
    let target = target.split(['?', '#']).next()?;
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let (mut names, mut is_folder) = (Vec::new(), true);
    for part in path.split('/').skip(1) {
        let name = decoded(part)?;
        is_folder = ["", ".", ".."].contains(&&*name);
        match &*name {
            "." => {}
            ".." => drop(names.pop()),
            _ if name.contains(['/', '\0']) => return None,
            _ => names.push(name),
        }
    }
    names.retain(|name| !name.is_empty());
    let mark = if is_folder && !names.is_empty() { "/" } else { "" };
    Some(names.join("/") + mark)
}

fn decoded(part: &str) -> Option<String> {
    let mut pieces = part.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.as_bytes().split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|two| !two.contains('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest);
    }
    // A name that is not UTF-8 matches no file.
    String::from_utf8(bytes).ok()
}

/// The temporary files. Dropping this removes them.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("rxo-fuzz-http-{}-{number}", std::process::id())))
    }

    fn fill(&self, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
        let www = self.0.join("www");
        fs::create_dir_all(www.join("sub/deep"))?;
        fs::create_dir_all(www.join(INDEXED))?;
        fs::create_dir_all(www.join(MANY))?;
        fs::write(self.0.join("secret"), b"the secret that is not served")?;
        for (name, bytes) in files.iter().filter(|(name, _)| *name != "inside") {
            fs::write(www.join(name), bytes)?;
            let file = File::options().write(true).open(www.join(name))?;
            // The modification time is so old that the entity tag is strong.
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000))?;
        }
        symlink("hello.txt", www.join("inside"))?;
        symlink("../secret", www.join("outside"))?;
        symlink("../..", www.join("sub/up"))?;
        symlink(www.join("hello.txt"), www.join("absolute"))?;
        symlink("loop", www.join("loop"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
