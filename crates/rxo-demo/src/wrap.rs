//! Wraps text into lines of readable width.

/// Returns `text` wrapped at `WIDTH` characters, between words. Paragraphs stay separate.
pub fn wrapped(text: &str) -> String {
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// Formats a count with its noun: `1 round`, `2 rounds`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn paragraph(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let text = "word ".repeat(50);
        let lines: Vec<_> = wrapped(&text).lines().map(str::len).collect();
        assert_eq!(lines, [99, 99, 49]);
        assert_eq!((wrapped(""), wrapped("a\nb\n\nc")), (String::new(), "a b\n\nc".to_owned()));
        let long = "x".repeat(150);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb"));
    }
}
