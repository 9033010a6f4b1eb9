//! The congestion control, which is the same for both stacks, because under loss it decides the rate.

use std::fmt;
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;

/// A congestion control that both stacks have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Congestion {
    #[default]
    Cubic,
    Reno,
    Bbr,
}

impl Congestion {
    /// Sets the congestion control of a Linux socket. Connections accepted from a listener inherit it.
    ///
    /// # Errors
    /// If the kernel does not have it.
    pub(super) fn set(self, socket: impl AsFd) -> Result<()> {
        let set = rustix::net::sockopt::set_tcp_congestion(socket, &self.to_string());
        set.with_context(|| {
            format!("--congestion {self}: this kernel does not have it; load the module tcp_{self}")
        })
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_has_what_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for congestion in [Congestion::Reno, Congestion::Cubic] {
            congestion.set(&listener).unwrap();
            let has = rustix::net::sockopt::tcp_congestion(&listener).unwrap();
            assert_eq!(has, congestion.to_string());
        }
    }
}
