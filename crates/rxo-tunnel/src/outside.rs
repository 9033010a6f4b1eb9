//! The UDP socket of the interface, whose port and mark can change while packets pass.

use rxo::DeviceError;
use rxo::driver::udp::{UdpOptions, UdpSocket};

/// The current socket. Each thread asks [`Outside::renewed`] whenever it locks the interface.
pub(crate) struct Outside {
    options: UdpOptions,
    socket: UdpSocket,
    /// The number of sockets before this one.
    generation: u64,
}

impl Outside {
    /// Binds a socket to `port`; 0 chooses any free port.
    ///
    /// # Errors
    /// If the port is in use, or packets may not be marked.
    pub(crate) fn open(port: u16, options: UdpOptions) -> Result<Self, DeviceError> {
        let socket = UdpSocket::bind_any(port, options)?;
        Ok(Self { options, socket, generation: 0 })
    }

    /// Returns the port.
    pub(crate) const fn port(&self) -> u16 {
        self.socket.local_addr().port()
    }

    /// Returns the mark of sent packets; 0 for none.
    pub(crate) const fn mark(&self) -> u32 {
        self.options.mark
    }

    /// Returns the current socket.
    pub(crate) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Moves to another port. Datagrams that wait at the old one are lost.
    ///
    /// # Errors
    /// If the port is in use; the old one stays then.
    pub(crate) fn set_port(&mut self, port: u16) -> Result<(), DeviceError> {
        if port != self.port() {
            self.socket = UdpSocket::bind_any(port, self.options)?;
            self.generation += 1;
        }
        Ok(())
    }

    /// Marks packets from now on.
    ///
    /// # Errors
    /// If packets may not be marked.
    pub(crate) fn set_mark(&mut self, mark: u32) -> Result<(), DeviceError> {
        self.socket.set_mark(mark)?;
        self.options.mark = mark;
        Ok(())
    }

    /// Returns the socket if it is not that of `generation`, which is updated.
    #[inline]
    pub(crate) fn renewed(&self, generation: &mut u64) -> Option<&UdpSocket> {
        let is_new = std::mem::replace(generation, self.generation) != self.generation;
        is_new.then_some(&self.socket)
    }
}
