//! Splits Rust source into words and signs, without comments, strings and characters.
//!
//! It implements only the part of Rust's lexical structure that this needs. It never fails: text that is no
//! Rust yields some words, and the compiler rejects it anyway.

/// Returns the numbers, from 1, of the lines with `word` in code, once for each occurrence.
pub(crate) fn lines_with_word(source: &str, word: &str) -> Vec<usize> {
    let mut scanner = Scanner { rest: source, line: 1 };
    let mut lines = Vec::new();
    while let Some((found, line)) = scanner.next_word() {
        if found == word {
            lines.push(line);
        }
    }
    lines
}

/// Returns the words of the code, and each sign as a token of its own.
pub(crate) fn tokens(source: &str) -> Vec<&str> {
    let mut scanner = Scanner { rest: source, line: 1 };
    std::iter::from_fn(|| scanner.next_token()).map(|(token, _)| token).collect()
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the next word in code and its line; `None` at the end.
    fn next_word(&mut self) -> Option<(&'a str, usize)> {
        std::iter::from_fn(|| self.next_token()).find(|(token, _)| token.starts_with(is_word))
    }

    /// Returns the next word or sign in code and its line; `None` at the end.
    fn next_token(&mut self) -> Option<(&'a str, usize)> {
        while let Some(first) = self.rest.chars().next() {
            if is_word(first) {
                let word = self.word();
                if !self.pass_raw_string(word) {
                    return Some((word, self.line));
                }
            } else if self.rest.starts_with("//") {
                self.pass(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.pass_block_comment();
            } else if first == '"' {
                self.pass(1);
                self.pass_until_unescaped('"');
            } else if first == '\'' {
                self.pass_character_or_lifetime();
            } else {
                let sign = &self.rest[..first.len_utf8()];
                self.pass(sign.len());
                if !first.is_whitespace() {
                    return Some((sign, self.line));
                }
            }
        }
        None
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Skips the raw string that begins with the prefix `word`. Returns `false` if there is none.
    fn pass_raw_string(&mut self, word: &str) -> bool {
        if !matches!(word, "r" | "br" | "cr") {
            return false;
        }
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if !self.rest[hashes..].starts_with('"') {
            return false;
        }
        let end = format!("\"{}", "#".repeat(hashes));
        self.pass(hashes + 1);
        let length = self.rest.find(&end).map_or(self.rest.len(), |at| at + end.len());
        self.pass(length);
        true
    }

    fn pass_block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.pass(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.pass(2);
            } else {
                let Some(next) = self.rest.chars().next() else { return };
                self.pass(next.len_utf8());
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn pass_character_or_lifetime(&mut self) {
        self.pass(1);
        let mut characters = self.rest.chars();
        match (characters.next(), characters.next()) {
            (Some('\\'), _) => self.pass_until_unescaped('\''),
            (Some(character), Some('\'')) => self.pass(character.len_utf8() + 1),
            _ => {}
        }
    }

    fn pass_until_unescaped(&mut self, end: char) {
        let mut is_escaped = false;
        while let Some(next) = self.rest.chars().next() {
            self.pass(next.len_utf8());
            if next == end && !is_escaped {
                return;
            }
            is_escaped = next == '\\' && !is_escaped;
        }
    }

    /// Skips `length` bytes, and counts their line ends.
    fn pass(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at(length);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
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
    fn unfinished_text_ends() {
        for source in ["\"a", "/* a", "'", "r#\"a", "'\\"] {
            assert!(lines_with_word(source, "unsafe").is_empty(), "{source}");
        }
    }
}
