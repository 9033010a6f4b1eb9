//! Splits sentences into plain text and code. Code is enclosed in backticks.

/// A part of a sentence: plain text or code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) is_code: bool,
}

/// Splits a sentence into plain text and code. A backtick without a partner is an ordinary character.
pub(super) fn spans(sentence: &str) -> Vec<Span> {
    let parts: Vec<&str> = sentence.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return vec![Span { text: sentence.to_owned(), is_code: false }];
    }
    let spans = parts.into_iter().enumerate();
    spans
        .filter(|(_, part)| !part.is_empty())
        .map(|(place, part)| Span { text: part.to_owned(), is_code: place % 2 == 1 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        let shown = |sentence: &str| -> String {
            let spans = spans(sentence).into_iter();
            spans
                .map(|span| if span.is_code { format!("<{}>", span.text) } else { span.text })
                .collect()
        };
        let rows = [
            ("type `rxo run` and wait", "type <rxo run> and wait"),
            ("`a` and `b`", "<a> and <b>"),
            ("nothing", "nothing"),
            ("it`s", "it`s"),
            ("", ""),
        ];
        for (sentence, expected) in rows {
            assert_eq!(shown(sentence), expected);
        }
    }
}
