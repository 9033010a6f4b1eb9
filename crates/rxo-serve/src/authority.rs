//! Validates an authority: a host with an optional port, as in the field `Host` and in absolute URIs.

use std::net::Ipv6Addr;

/// Returns `true` if `text` is a non-empty host, optionally with a port (RFC 3986, section 3.2; RFC 9110,
/// section 4.2.1). User information before the host is an error (RFC 9110, section 4.2.4).
pub(crate) fn is_authority(text: &str) -> bool {
    let (is_host, rest) = match text.strip_prefix('[') {
        Some(text) => {
            let Some((literal, rest)) = text.split_once(']') else { return false };
            (literal.parse::<Ipv6Addr>().is_ok() || is_future(literal), rest)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (is_name(&text[..end]), &text[end..])
        }
    };
    is_host && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// Returns `true` if `literal` is an address of a future IP version: `v`, the version number, a dot, and the
/// address.
fn is_future(literal: &str) -> bool {
    let Some((version, address)) = literal.split_once('.') else { return false };
    let digits = version.strip_prefix(['v', 'V']).unwrap_or("");
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number && !address.is_empty() && address.bytes().all(|byte| byte == b':' || is_plain(byte))
}

fn is_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'%', [high, low, behind @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                behind
            }
            _ if is_plain(*first) => behind,
            _ => return false,
        };
    }
    !name.is_empty()
}

/// Returns `true` if `text` is a port. An empty string stands for the default port.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Returns `true` for letters, digits and all other characters that a host name may contain unescaped.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'')
        || matches!(byte, b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_host() {
        let hosts = [
            "a",
            "localhost:8080",
            "10.0.0.2",
            "10.0.0.2:80",
            "[::1]",
            "[fd00::2]:8080",
            "a:",
            "x_y.example",
            "[v1.fe80::a+en1]",
            "%c3%a9.example",
            "a.:65535",
        ];
        hosts.iter().for_each(|text| assert!(is_authority(text), "{text}"));
        let others = [
            "",
            ":80",
            "a b",
            "a/b",
            "a:b",
            "a:-1",
            "a:+1",
            "a:65536",
            "a:80:80",
            "::1",
            "[::1",
            "[::1]x",
            "[fe80::1%eth0]",
            "[]",
            "[v.a]",
            "[v1.]",
            "user@a",
            "a?b",
            "a#b",
            "a\\b",
            "a%2",
            "é",
            "<a>",
            "a,b c",
        ];
        others.iter().for_each(|text| assert!(!is_authority(text), "{text}"));
    }
}
