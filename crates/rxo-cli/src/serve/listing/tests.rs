//! Pages of directories that there are.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::limits::LISTING_BYTES;
use super::super::root::{Found, Root};
use super::*;

/// A directory with these names; removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(label: &str, names: impl IntoIterator<Item = String>) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-list-{}-{label}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for name in names {
            match name.strip_suffix('/') {
                Some(folder) => fs::create_dir(path.join(folder)).unwrap(),
                None => drop(fs::File::create(path.join(name)).unwrap()),
            }
        }
        Self(path)
    }

    /// The pieces of the page that it is as `target`.
    fn pieces(&self, target: &str) -> Vec<String> {
        let Found::Folder(folder) =
            Root::open(&self.0).unwrap().find(Path::new("."), true).unwrap()
        else {
            panic!("no directory")
        };
        let mut listing = Listing::new(folder, &Target::parse(target).unwrap());
        let mut pieces = Vec::new();
        while !listing.is_done() {
            let mut piece = Vec::new();
            listing.next(&mut piece).unwrap();
            assert!(!piece.is_empty() && piece.len() <= LISTING_BYTES + 2_048, "{}", piece.len());
            pieces.push(String::from_utf8(piece).unwrap());
        }
        pieces
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn names_are_shown_as_text_and_linked_as_addresses() {
    let names = ["<script>.txt", "sub dir/", "a:b&\"c\""].map(str::to_owned);
    let page = Scratch::new("odd", names).pieces("/a%3Cb/").concat();
    assert!(page.contains("<a href=\"./%3Cscript%3E.txt\">&lt;script&gt;.txt</a>"), "{page}");
    assert!(page.contains("<a href=\"./sub%20dir/\">sub dir/</a>"), "{page}");
    assert!(page.contains("<a href=\"./a%3Ab%26%22c%22\">a:b&amp;&quot;c&quot;</a>"), "{page}");
    assert!(page.contains("<title>/a&lt;b/</title>") && page.contains("href=\"../\""));
    assert_eq!(item(&[0xff]), "<li><a href=\"./%FF\">\u{fffd}</a>\n");
}

#[test]
fn above_the_directory_itself_there_is_nothing() {
    assert_eq!(Scratch::new("root", []).pieces("/").concat().matches("<a").count(), 0);
}

/// Every name once and in order, however many pieces that takes.
#[test]
fn a_page_of_many_pieces_is_whole() {
    let name = |index: u32| match index % 7 {
        0 => format!("{:05}-{}", index * 7_919 % 5_000, "%<&>".repeat(50)),
        _ => format!(
            "{:05}{}",
            index * 7_919 % 5_000,
            if index.is_multiple_of(5) { "/" } else { "" }
        ),
    };
    let mut names: Vec<String> = (0..5_000).map(name).collect();
    let pieces = Scratch::new("many", names.clone()).pieces("/");
    let items: usize = pieces.iter().map(|piece| piece.matches("<li>").count()).sum();
    assert!(pieces.len() > 10, "{} pieces, {items} names", pieces.len());
    names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let expected: String = names.iter().map(|name| item(name.as_bytes())).collect();
    let page = pieces.concat();
    let shown = page.split("<ul>\n").nth(1).unwrap().strip_suffix("</ul>\n").unwrap();
    assert!(shown == expected, "{} bytes instead of {}", shown.len(), expected.len());
}

#[test]
fn a_page_ends_after_ten_thousand_names_and_says_so() {
    for (count, has_more) in [(MOST_NAMES, false), (MOST_NAMES + 1, true)] {
        let names = (0..count).map(|index| format!("{index:05}"));
        let page = Scratch::new(&format!("most-{count}"), names).pieces("/").concat();
        assert_eq!(page.matches("<li>").count(), MOST_NAMES);
        assert!(page.contains("09999</a>") && !page.contains("10000</a>"));
        assert_eq!(page.contains("more than these"), has_more, "{count}");
    }
}
