//! Parses requests from the bytes that a client sends.

use ip_network::IpNetwork;

use super::{Change, PeerSettings, Refusal, Request, Settings};
use crate::keys::from_hex;
use crate::network::Network;

/// Maximum length of a request, in bytes: enough for about 100,000 peers with an address each.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Splits the byte stream of one client into requests.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
    /// The number of bytes that have been searched for the end of the request.
    searched: usize,
}

impl Reader {
    /// Appends bytes received from the client.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes and returns the next complete request, or the reason to refuse it; `None` until an empty line has
    /// arrived. After [`Refusal::TooLong`] the client must be disconnected, because the rest of the request has not
    /// arrived yet.
    pub(crate) fn take_request(&mut self) -> Option<Result<Request, Refusal>> {
        let length = if self.bytes.first() == Some(&b'\n') {
            1
        } else {
            let from = self.searched.saturating_sub(1);
            let end = self.bytes[from..].windows(2).position(|two| two == b"\n\n");
            self.searched = self.bytes.len();
            match end {
                Some(end) => from + end + 2,
                None if self.bytes.len() > MOST_BYTES => return Some(Err(Refusal::TooLong)),
                None => return None,
            }
        };
        let request = parse(&self.bytes[..length]);
        self.bytes.drain(..length);
        self.searched = 0;
        Some(request)
    }
}

/// Parses one request, which ends with an empty line.
fn parse(bytes: &[u8]) -> Result<Request, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Invalid)?;
    let mut lines = text.lines().take_while(|line| !line.is_empty());
    match lines.next() {
        Some("get=1") if lines.next().is_none() => Ok(Request::Get),
        Some("set=1") => settings(lines).map(Request::Set),
        _ => Err(Refusal::Invalid),
    }
}

fn settings<'l>(lines: impl Iterator<Item = &'l str>) -> Result<Settings, Refusal> {
    let mut settings = Settings::default();
    for line in lines {
        let (key, value) = line.split_once('=').ok_or(Refusal::Protocol)?;
        let read = match settings.peers.last_mut() {
            _ if key == "public_key" => from_hex(value).map(|public_key| {
                settings.peers.push(PeerSettings { public_key, ..PeerSettings::default() });
            }),
            Some(peer) => of_peer(peer, key, value),
            None => of_interface(&mut settings, key, value),
        };
        read.ok_or(Refusal::Invalid)?;
    }
    Ok(settings)
}

/// Parses one line of a request's interface section, before the first peer. `None` if its key is unknown or its
/// value invalid.
fn of_interface(settings: &mut Settings, key: &str, value: &str) -> Option<()> {
    match key {
        "private_key" => settings.private_key = Some(from_hex(value)?),
        "listen_port" => settings.listen_port = Some(number(value)?),
        "fwmark" => settings.mark = Some(number(value)?),
        "replace_peers" => settings.replaces_peers = yes(value)?,
        _ => return None,
    }
    Some(())
}

/// Parses one line of a request's section about a peer. `None` if its key is unknown or its value invalid.
fn of_peer(peer: &mut PeerSettings, key: &str, value: &str) -> Option<()> {
    match key {
        "remove" => peer.is_removed = yes(value)?,
        "update_only" => peer.only_updates = yes(value)?,
        "preshared_key" => peer.preshared_key = Some(from_hex(value)?),
        "endpoint" => peer.endpoint = Some(value.parse().ok()?),
        "persistent_keepalive_interval" => peer.keepalive = Some(number(value)?),
        "replace_allowed_ips" => peer.replaces_allowed = yes(value)?,
        "allowed_ip" => peer.allowed.push(allowed(value)?),
        "protocol_version" if value == "1" => {}
        _ => return None,
    }
    Some(())
}

/// Parses the change of an allowed network: `-NETWORK` removes the network, `+NETWORK` or `NETWORK` adds it.
/// `None` if `value` is invalid.
fn allowed(value: &str) -> Option<(Change, IpNetwork)> {
    let (change, network) = match value.split_at_checked(1) {
        Some(("-", rest)) => (Change::Remove, rest),
        Some(("+", rest)) => (Change::Add, rest),
        _ => (Change::Add, value),
    };
    let has_length = network.split_once('/').is_some_and(|(_, bits)| is_number(bits));
    let network: Network = network.parse().ok().filter(|_| has_length)?;
    Some((change, network.all))
}

fn yes(value: &str) -> Option<bool> {
    (value == "true").then_some(true)
}

/// Parses a decimal number without a sign; `None` if `value` is not such a number, or too large for `N`.
fn number<N: std::str::FromStr>(value: &str) -> Option<N> {
    value.parse().ok().filter(|_| is_number(value))
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
