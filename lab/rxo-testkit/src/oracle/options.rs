//! The TCP options of a segment as a list, one after the other.

/// Kind of the no-operation option, which has no length.
pub(super) const NO_OPERATION: u8 = 1;
pub(super) const SACK: u8 = 5;
pub(super) const TIMESTAMP: u8 = 8;

/// One option: its kind, and the bytes after its length (none for a no-operation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opt {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// Returns all options up to the end of the list; `None` if a length is invalid.
pub(super) fn list(options: &[u8]) -> Option<Vec<Opt>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < options.len() && options[at] != 0 {
        let kind = options[at];
        let length = if kind == NO_OPERATION { 1 } else { usize::from(*options.get(at + 1)?) };
        let lies = kind != NO_OPERATION && length < 2;
        if lies || at + length > options.len() {
            return None;
        }
        let body = options[at..at + length].iter().skip(2).copied().collect();
        found.push(Opt { kind, body });
        at += length;
    }
    Some(found)
}

/// Returns the options without no-operations; `None` if a length is invalid.
pub(super) fn real(options: &[u8]) -> Option<Vec<Opt>> {
    Some(list(options)?.into_iter().filter(|opt| opt.kind != NO_OPERATION).collect())
}
