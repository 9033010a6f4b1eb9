//! A directory as a page. Pure.

use super::target::{Target, encoded};

/// The page for the names of a directory, those of directories with a `/` behind. `has_more` when
/// there are more than these.
pub(super) fn page(target: &Target, names: &[Vec<u8>], has_more: bool) -> String {
    let title = escaped(&target.title());
    let up = if target.has_parent() { "<li><a href=\"../\">../</a>\n" } else { "" };
    let items: String = names.iter().map(|name| item(name)).collect();
    let more = if has_more { "<p>There are more than these.\n" } else { "" };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <h1>{title}</h1>\n<ul>\n{up}{items}</ul>\n{more}"
    )
}

fn item(name: &[u8]) -> String {
    let (plain, mark) = match name.strip_suffix(b"/") {
        Some(plain) => (plain, "/"),
        None => (name, ""),
    };
    let shown = escaped(&String::from_utf8_lossy(plain));
    // The dot keeps a name with a colon from being read as a scheme.
    format!("<li><a href=\"./{}{mark}\">{shown}{mark}</a>\n", encoded(plain))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_text_and_linked_as_addresses() {
        let target = Target::parse("/a%3Cb/").unwrap();
        let names = [b"<script>.txt".to_vec(), b"sub dir/".to_vec(), vec![0xff]];
        let page = page(&target, &names, true);
        assert!(page.contains("<a href=\"./%3Cscript%3E.txt\">&lt;script&gt;.txt</a>"), "{page}");
        assert!(page.contains("<a href=\"./sub%20dir/\">sub dir/</a>"), "{page}");
        assert!(page.contains("<a href=\"./%FF\">\u{fffd}</a>"), "{page}");
        assert!(page.contains("<title>/a&lt;b/</title>") && page.contains("href=\"../\""));
        assert!(page.contains("more than these"));
    }

    #[test]
    fn above_the_directory_itself_there_is_nothing() {
        assert!(!page(&Target::parse("/").unwrap(), &[], false).contains("../"));
    }
}
