//! The programs of a tunnel, and their command lines.

use std::path::{Path, PathBuf};

use super::{End, INSIDE, MTU, PORT};

/// The implementation of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelKind {
    /// rxo-tunnel.
    Rxo,
    /// WireGuard's own implementation in Go.
    WireguardGo,
    /// The command of boringtun.
    BoringtunCli,
    /// The command of gotatun.
    Gotatun,
}

/// A program for one end of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelProgram {
    kind: TunnelKind,
    file: PathBuf,
    arguments: Vec<String>,
}

impl TunnelKind {
    /// The foreign implementations.
    pub const FOREIGN: [Self; 3] = [Self::WireguardGo, Self::BoringtunCli, Self::Gotatun];

    /// Returns the implementation's name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rxo => "rxo-tunnel",
            Self::WireguardGo => "wireguard-go",
            Self::BoringtunCli => "boringtun-cli",
            Self::Gotatun => "gotatun",
        }
    }

    /// Returns the name of the program's file.
    const fn file_name(self) -> &'static str {
        match self {
            Self::Rxo => "rxo-tunnel",
            // Name that `go install` gives the program.
            Self::WireguardGo => "wireguard",
            Self::BoringtunCli => "boringtun-cli",
            Self::Gotatun => "gotatun",
        }
    }
}

impl TunnelProgram {
    /// Makes the program rxo-tunnel in `file`, with `arguments` besides keys and addresses.
    #[must_use]
    pub fn rxo(file: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { kind: TunnelKind::Rxo, file: file.to_owned(), arguments }
    }

    /// Makes a foreign program, in the folder into which `cargo xtask` installs it.
    #[must_use]
    pub fn foreign(kind: TunnelKind, folder: &Path) -> Self {
        Self { kind, file: folder.join(kind.file_name()), arguments: Vec::new() }
    }

    /// Returns the program's file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the flags with which the program stays in the foreground.
    #[must_use]
    pub const fn foreground(&self) -> &'static [&'static str] {
        match self.kind {
            TunnelKind::Rxo | TunnelKind::WireguardGo => &["-f"],
            TunnelKind::BoringtunCli | TunnelKind::Gotatun => &["-f", "--disable-drop-privileges"],
        }
    }

    /// Returns the program's implementation.
    #[must_use]
    pub const fn kind(&self) -> TunnelKind {
        self.kind
    }

    /// Returns the words of the command line.
    pub(super) fn command(&self, end: &End<'_>, key: &Path) -> Vec<String> {
        let list = |all: &[(std::net::IpAddr, u8)]| {
            all.iter().map(|(ip, bits)| format!("{ip}/{bits}")).collect::<Vec<_>>().join(",")
        };
        let text = |text: &str| text.to_owned();
        let mut words = vec![self.file.display().to_string()];
        words.extend(match self.kind {
            TunnelKind::Rxo => vec![
                text("--private-key"),
                key.display().to_string(),
                text("--peer"),
                text(end.peer.public),
                text("--endpoint"),
                format!("{}:{PORT}", end.peer_outside),
                text("--listen-port"),
                PORT.to_string(),
                end.interface.clone(),
                text("--address"),
                list(&end.addresses.map(|ip| (ip, if ip.is_ipv4() { 24 } else { 64 }))),
                text("--allowed-ips"),
                list(&INSIDE),
                text("--mtu"),
                MTU.to_string(),
            ],
            _ => {
                let flags = self.foreground().iter().map(|flag| text(flag));
                flags.chain([end.interface.clone()]).collect()
            }
        });
        words.extend(self.arguments.iter().cloned());
        words
    }
}
