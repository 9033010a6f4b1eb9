//! The address of `--metrics`: an IP address and a port, or a unix socket.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result};
use rxo_driver::{Access, Listener};

use crate::exit::usage;

/// The parsed value of `--metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A bound socket on which a process answers requests for metrics. Clients that connect earlier wait until the
/// process serves the socket.
#[derive(Debug)]
pub(crate) enum MetricsListener {
    Tcp(TcpListener),
    Unix(Listener),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            usage(format!(
                "--metrics {text}: give an address and a port, such as 127.0.0.1:9464 or [::1]:9464, or unix:PATH"
            ))
        };
        match text.strip_prefix("unix:") {
            Some("") => Err(refused()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => {
                let address: Option<SocketAddr> = text.parse().ok();
                address.filter(|it| it.port() > 0).map(Self::Tcp).ok_or_else(refused)
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Binds a socket to this address. The file of a unix socket is created with mode 0600.
    ///
    /// # Errors
    /// If another process listens there, or the socket cannot be bound.
    pub(crate) fn bind(&self) -> Result<MetricsListener> {
        match self {
            Self::Unix(path) => {
                Ok(MetricsListener::Unix(Listener::bind(&self.label(), path, Access::OwnerOnly)?))
            }
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).map_err(|error| self.refused(error))?;
                listener.set_nonblocking(true).with_context(|| self.label())?;
                Ok(MetricsListener::Tcp(listener))
            }
        }
    }

    /// Creates the socket for this address from a descriptor that another process has handed over.
    pub(crate) fn inherit(&self, file: OwnedFd) -> MetricsListener {
        match self {
            Self::Unix(path) => MetricsListener::Unix(Listener::inherit(file, path)),
            Self::Tcp(_) => MetricsListener::Tcp(file.into()),
        }
    }

    /// Checks that a socket could be bound to this address, without lasting changes.
    ///
    /// # Errors
    /// The errors of [`Address::bind`].
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Unix(path) => Ok(Listener::check(&self.label(), path)?),
            Self::Tcp(_) => self.bind().map(drop),
        }
    }

    /// Returns the path of the unix socket; `None` for a TCP address.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }

    fn label(&self) -> String {
        format!("--metrics {self}")
    }

    fn refused(&self, error: io::Error) -> Error {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "a process listens there; end it or choose another port",
            io::ErrorKind::AddrNotAvailable => {
                "this system has no such address; choose one that it has"
            }
            io::ErrorKind::PermissionDenied => "this user may not; choose a port from 1024 on",
            _ => "the system refused",
        };
        Error::from(error).context(format!("cannot open {}: {remedy}", self.label()))
    }
}

impl MetricsListener {
    /// Returns a duplicate of the socket's descriptor, for the thread that serves it.
    ///
    /// # Errors
    /// If the descriptor cannot be copied.
    pub(super) fn socket(&self) -> io::Result<rxo_control::Listener> {
        Ok(match self {
            Self::Tcp(listener) => rxo_control::Listener::Tcp(listener.try_clone()?),
            Self::Unix(listener) => rxo_control::Listener::Unix(listener.socket()?),
        })
    }

    /// Returns a duplicate of the socket's descriptor, for a process that takes the socket over.
    ///
    /// # Errors
    /// If the descriptor cannot be copied.
    pub(crate) fn file(&self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Tcp(listener) => listener.try_clone()?.into(),
            Self::Unix(listener) => listener.socket()?.into(),
        })
    }

    /// Closes the socket in this process. The file of a unix socket stays, because another process of this run serves
    /// it.
    pub(crate) fn leave(self) {
        if let Self::Unix(listener) = self {
            listener.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written() {
        for text in ["127.0.0.1:9464", "[::1]:9464", "unix:/run/rxo.metrics"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "9464", "localhost:9464", "127.0.0.1:0", "unix:", "/run/rxo.metrics"] {
            let said = text.parse::<Address>().unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("--metrics {text}: give an address and a port")),
                "{said}"
            );
        }
    }

    #[test]
    fn an_address_that_is_taken_is_refused_with_the_remedy() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(taken.local_addr().unwrap());
        for refused in [address.check().unwrap_err(), address.bind().map(drop).unwrap_err()] {
            let said = refused.to_string();
            assert_eq!(
                said,
                format!(
                    "cannot open --metrics {address}: a process listens there; end it or choose another port"
                )
            );
        }
        let foreign: Address = "192.0.2.1:9464".parse().unwrap();
        assert!(foreign.check().unwrap_err().to_string().contains("has no such address"));
    }
}
