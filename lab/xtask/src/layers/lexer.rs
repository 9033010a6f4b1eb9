//! Splits Rust source into words and signs, without comments, strings and characters.
//!
//! `proc-macro2` knows Rust's lexical structure. Text that is no Rust has no tokens; the compiler rejects it anyway.

use std::ops::Range;

use proc_macro2::{Span, TokenStream, TokenTree};

/// Returns the numbers, from 1, of the lines with `word` in code, once for each occurrence.
pub(crate) fn lines_with_word(source: &str, word: &str) -> Vec<usize> {
    let spans = spans(source).into_iter();
    let is_word = |span: &Span| source.get(span.byte_range()) == Some(word);
    spans.filter(is_word).map(|span| span.start().line).collect()
}

/// Returns the words of the code, and each sign as a token of its own.
pub(crate) fn tokens(source: &str) -> Vec<&str> {
    let of = |range: Range<usize>| source.get(range);
    spans(source).iter().filter_map(|span| of(span.byte_range())).collect()
}

fn spans(source: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    collect(source.parse().unwrap_or_default(), &mut spans);
    spans
}

fn collect(stream: TokenStream, spans: &mut Vec<Span>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                spans.push(group.span_open());
                collect(group.stream(), spans);
                spans.push(group.span_close());
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => spans.push(tree.span()),
            TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{lines_with_word, tokens};

    #[test]
    fn code_has_the_word() {
        assert_eq!(lines_with_word("fn a() {\n    unsafe { b() }\n}\n", "unsafe"), [2]);
        assert_eq!(lines_with_word("#[unsafe(no_mangle)]", "unsafe"), [1]);
        assert_eq!(lines_with_word("unsafe impl A {} unsafe fn b() {}", "unsafe"), [1, 1]);
    }

    #[test]
    fn tokens_are_words_and_signs() {
        assert_eq!(tokens("a::b /* c */ {\"d\"}"), ["a", ":", ":", "b", "{", "}"]);
    }

    #[test]
    fn longer_words_are_others() {
        assert!(lines_with_word("#![allow(unsafe_code)] fn unsafely() {}", "unsafe").is_empty());
    }

    #[test]
    fn text_does_not_count() {
        for source in [
            "// unsafe",
            "/// unsafe\nfn a() {}",
            "/* a /* nested */ unsafe */",
            r#"let a = "unsafe \" unsafe";"#,
            r##"let a = r#"unsafe " unsafe"#;"##,
            r##"let a = br#"unsafe"#;"##,
            "let a = b\"unsafe\";",
        ] {
            assert!(lines_with_word(source, "unsafe").is_empty(), "{source}");
        }
    }

    #[test]
    fn code_after_text_counts_again() {
        for source in [
            "/* x */ unsafe",
            r#""a\\" unsafe"#,
            r###"r##"a"# "## unsafe"###,
            "'\"' unsafe",
            r"'\'' unsafe",
            "fn a<'a>(x: &'a str) { unsafe }",
            "r#type unsafe",
            "'é' unsafe",
        ] {
            assert_eq!(lines_with_word(source, "unsafe"), [1], "{source}");
        }
    }

    #[test]
    fn lines_are_counted_through_text() {
        assert_eq!(lines_with_word("/* \n */ \"\n\" // \nunsafe", "unsafe"), [4]);
    }

    #[test]
    fn unfinished_text_has_no_words() {
        for source in ["\"a", "/* a", "'", "r#\"a", "'\\"] {
            assert!(lines_with_word(source, "unsafe").is_empty(), "{source}");
        }
    }
}
