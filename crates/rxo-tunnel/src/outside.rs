//! The UDP socket of the interface, whose port and mark can change while packets pass.

use rxo::DeviceError;
use rxo::driver::udp::{UdpOptions, UdpSocket};

/// The current UDP socket. Each thread calls [`Outside::renewed`] whenever it locks the interface, to notice a
/// new socket.
pub(crate) struct Outside {
    options: UdpOptions,
    socket: UdpSocket,
    /// The number of sockets that this one has replaced.
    generation: u64,
}

impl Outside {
    /// Binds a socket to `port`; 0 chooses any free port.
    ///
    /// # Errors
    /// If the port is in use, or this process may not mark packets.
    pub(crate) fn open(port: u16, options: UdpOptions) -> Result<Self, DeviceError> {
        let socket = UdpSocket::bind_any(port, options)?;
        Ok(Self { options, socket, generation: 0 })
    }

    /// Returns the local UDP port.
    pub(crate) const fn port(&self) -> u16 {
        self.socket.local_addr().port()
    }

    /// Returns the mark (`SO_MARK`) of sent packets; 0 means no mark.
    pub(crate) const fn mark(&self) -> u32 {
        self.options.mark
    }

    /// Returns the current socket.
    pub(crate) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Replaces the socket by one on `port`. Datagrams that wait in the old socket are lost.
    ///
    /// # Errors
    /// If the port is in use. In that case the old socket stays.
    pub(crate) fn set_port(&mut self, port: u16) -> Result<(), DeviceError> {
        if port != self.port() {
            self.socket = UdpSocket::bind_any(port, self.options)?;
            self.generation += 1;
        }
        Ok(())
    }

    /// Sets the mark (`SO_MARK`) of all packets sent from now on.
    ///
    /// # Errors
    /// If this process may not mark packets.
    pub(crate) fn set_mark(&mut self, mark: u32) -> Result<(), DeviceError> {
        self.socket.set_mark(mark)?;
        self.options.mark = mark;
        Ok(())
    }

    /// Returns the current socket if its generation differs from `generation`, and updates `generation`;
    /// otherwise `None`.
    #[inline]
    pub(crate) fn renewed(&self, generation: &mut u64) -> Option<&UdpSocket> {
        let is_new = std::mem::replace(generation, self.generation) != self.generation;
        is_new.then_some(&self.socket)
    }
}
