//! Formats the answers of the control socket.

use std::fmt::Write as _;

use super::{PeerStatus, Refusal, Status};
use crate::keys::to_hex;

/// Returns the complete answer to a request: `lines`, the error number (0 for success), and an empty line.
pub(crate) fn answer(lines: &str, result: Result<(), Refusal>) -> String {
    let number = result.err().map_or(0, |refusal| refusal as i32);
    format!("{lines}errno={number}\n\n")
}

/// Returns the settings and counters as lines. The lines include the private key, so only the answer to a `get`
/// request may contain them.
pub(crate) fn figures(status: &Status) -> String {
    let mut lines = String::new();
    if let Some(key) = &status.private_key {
        line(&mut lines, "private_key", to_hex(key));
    }
    line(&mut lines, "listen_port", status.listen_port);
    if status.mark != 0 {
        line(&mut lines, "fwmark", status.mark);
    }
    status.peers.iter().for_each(|peer| of_peer(&mut lines, peer));
    lines
}

fn of_peer(lines: &mut String, peer: &PeerStatus) {
    line(lines, "public_key", to_hex(&peer.public_key));
    line(lines, "preshared_key", to_hex(&peer.preshared_key.unwrap_or_default()));
    line(lines, "protocol_version", 1);
    if let Some(endpoint) = peer.endpoint {
        line(lines, "endpoint", endpoint);
    }
    line(lines, "last_handshake_time_sec", peer.handshake_at.as_secs());
    line(lines, "last_handshake_time_nsec", peer.handshake_at.subsec_nanos());
    line(lines, "tx_bytes", peer.sent_bytes);
    line(lines, "rx_bytes", peer.received_bytes);
    line(lines, "persistent_keepalive_interval", peer.keepalive);
    peer.allowed.iter().for_each(|network| line(lines, "allowed_ip", network));
}

fn line(lines: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a string does not fail.
    _ = writeln!(lines, "{key}={value}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::network::Network;

    #[test]
    fn an_interface_without_settings_has_a_port() {
        assert_eq!(answer(&figures(&Status::default()), Ok(())), "listen_port=0\nerrno=0\n\n");
    }

    #[test]
    fn every_figure_of_a_peer_is_a_line() {
        let peer = PeerStatus {
            public_key: [0x11; 32],
            preshared_key: None,
            endpoint: Some("[fd00::1]:7".parse().unwrap()),
            handshake_at: Duration::new(1_700_000_000, 5),
            sent_bytes: 38_333,
            received_bytes: 2_224,
            keepalive: 111,
            allowed: ["10.0.0.0/8", "::/0"].map(|it| it.parse::<Network>().unwrap().all).to_vec(),
        };
        let status = Status { mark: 51_820, listen_port: 7, peers: vec![peer], private_key: None };
        let expected = format!(
            "listen_port=7\nfwmark=51820\npublic_key={}\npreshared_key={}\nprotocol_version=1\n\
             endpoint=[fd00::1]:7\nlast_handshake_time_sec=1700000000\n\
             last_handshake_time_nsec=5\ntx_bytes=38333\nrx_bytes=2224\n\
             persistent_keepalive_interval=111\nallowed_ip=10.0.0.0/8\nallowed_ip=::/0\n",
            "11".repeat(32),
            "00".repeat(32),
        );
        assert_eq!(figures(&status), expected);
    }
}
