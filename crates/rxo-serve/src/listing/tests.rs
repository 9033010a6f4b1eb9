//! Pages of directories, from lists of names.

use super::*;

/// Returns the pieces of the page of the directory with `names`, requested as `target`.
fn pieces(names: impl IntoIterator<Item = String>, target: &str) -> Vec<String> {
    let mut all = Names::default();
    all.extend(names.into_iter().map(String::into_bytes));
    let mut listing = Listing::new(Arc::new(all), &Target::parse(target).unwrap());
    let is_short = listing.is_short();
    let mut pieces = Vec::new();
    while !listing.is_done() {
        let piece = listing.next();
        assert!(!piece.is_empty() && piece.len() <= LISTING_BYTES + 2_048, "{}", piece.len());
        pieces.push(piece);
    }
    assert_eq!(is_short, pieces.len() == 1);
    pieces
}

#[test]
fn names_are_shown_as_text_and_linked_as_addresses() {
    let names = ["<script>.txt", "sub dir/", "a:b&\"c\""].map(str::to_owned);
    let page = pieces(names, "/a%3Cb/").concat();
    assert!(page.contains("<a href=\"./%3Cscript%3E.txt\">&lt;script&gt;.txt</a>"), "{page}");
    assert!(page.contains("<a href=\"./sub%20dir/\">sub dir/</a>"), "{page}");
    assert!(page.contains("<a href=\"./a%3Ab%26%22c%22\">a:b&amp;&quot;c&quot;</a>"), "{page}");
    assert!(page.contains("<title>/a&lt;b/</title>") && page.contains("href=\"../\""));
    assert_eq!(item(&[0xff]), "<li><a href=\"./%FF\">\u{fffd}</a>\n");
}

#[test]
fn above_the_directory_itself_there_is_nothing() {
    assert_eq!(pieces([], "/").concat().matches("<a").count(), 0);
}

/// Every name appears once and in order, however many pieces there are.
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
    let pieces = pieces(names.clone(), "/");
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
    for (count, has_more) in [(Names::MOST, false), (Names::MOST + 1, true)] {
        let page = pieces((0..count).map(|index| format!("{index:05}")), "/").concat();
        assert_eq!(page.matches("<li>").count(), Names::MOST);
        assert!(page.contains("09999</a>") && !page.contains("10000</a>"));
        assert_eq!(page.contains("more than these"), has_more, "{count}");
    }
}
