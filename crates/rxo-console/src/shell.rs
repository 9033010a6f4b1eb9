//! Quotes command lines so that a user can repeat them in a shell.

use std::borrow::Cow;

/// Returns the command line of this process, quoted for a shell, with `rxo` as the program.
pub fn command() -> String {
    let arguments = std::env::args_os().skip(1);
    let words = arguments.map(|word| quoted(&word.to_string_lossy()).into_owned());
    std::iter::once("rxo".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns `word` in quotes if a shell requires them; otherwise `word` itself.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        let rows = [
            ("--poll", "--poll"),
            ("time:50us", "time:50us"),
            ("a b.pcap", "'a b.pcap'"),
            ("flows=1..8*2", "'flows=1..8*2'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ];
        for (word, typed) in rows {
            assert_eq!(quoted(word), typed);
        }
    }
}
