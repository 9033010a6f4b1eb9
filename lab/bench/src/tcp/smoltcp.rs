//! smoltcp in its fastest configuration: no timestamps, no congestion control, no link layer, and one poll
//! for all frames of a turn.

use rxo_frame::Instant;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::link::{Buffer, MTU, Port};
use super::stack::{
    BUFFER_BYTES, CALL_BYTES, CLIENT, FIRST_PORT, Reading, Role, SERVER, SERVER_PORT, Setting,
    Stack, look_at,
};

/// The contender: interface, sockets and application.
pub(crate) struct Smoltcp {
    device: Link,
    interface: Interface,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    role: Role,
    reading: Reading,
    application: Vec<u8>,
    read_bytes: u64,
}

impl Smoltcp {
    pub(crate) fn new(setting: Setting) -> Self {
        let mut device =
            Link { port: Port::new(setting.checksums, false), checksums: setting.checksums };
        let zero = smoltcp::time::Instant::ZERO;
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, zero);
        let own = if setting.role == Role::OpensAndWrites { CLIENT } else { SERVER };
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(own), 24)).expect("room for one address");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let handles = (0..setting.connections)
            .map(|number| sockets.add(socket(setting.role, &mut interface, number)))
            .collect();
        let application = vec![0; CALL_BYTES];
        let Setting { role, reading, .. } = setting;
        Self { device, interface, sockets, handles, role, reading, application, read_bytes: 0 }
    }

    fn read(&mut self) {
        for handle in &self.handles {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            while socket.can_recv() {
                let read = match self.reading {
                    Reading::Copied => socket.recv_slice(&mut self.application),
                    Reading::InPlace => socket.recv(|bytes| {
                        look_at(bytes);
                        (bytes.len(), bytes.len())
                    }),
                };
                self.read_bytes += read.unwrap_or(0) as u64;
            }
        }
    }

    fn write(&mut self) {
        for handle in &self.handles {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            while socket.can_send() {
                let _ = socket.send_slice(&self.application);
            }
        }
    }
}

fn address([a, b, c, d]: [u8; 4]) -> IpAddress {
    IpAddress::v4(a, b, c, d)
}

fn socket(role: Role, interface: &mut Interface, number: u16) -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    let opened = match role {
        Role::Reads => socket.listen(SERVER_PORT).is_ok(),
        Role::OpensAndWrites => {
            let to = (address(SERVER), SERVER_PORT);
            socket.connect(interface.context(), to, FIRST_PORT + number).is_ok()
        }
    };
    assert!(opened, "a socket that opens");
    socket
}

impl Stack for Smoltcp {
    fn port(&mut self) -> &mut Port {
        &mut self.device.port
    }

    fn turn(&mut self, now: Instant) {
        let now = smoltcp::time::Instant::from_micros((now.as_nanos() / 1_000) as i64);
        if self.role == Role::Reads {
            self.interface.poll(now, &mut self.device, &mut self.sockets);
            self.read();
        } else {
            self.write();
            self.interface.poll(now, &mut self.device, &mut self.sockets);
        }
    }

    fn idle(&mut self, now: Instant) {
        self.turn(now);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

/// The port as a smoltcp device.
struct Link {
    port: Port,
    checksums: bool,
}

struct Received(Buffer);

struct Sent<'a>(&'a mut Port);

impl Device for Link {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    #[inline]
    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Received, Sent<'_>)> {
        let frame = self.port.received.pop_front()?;
        Some((Received(frame.bytes), Sent(&mut self.port)))
    }

    #[inline]
    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.port))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        if !self.checksums {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        capabilities
    }
}

impl phy::RxToken for Received {
    #[inline]
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0.as_ref())
    }
}

impl phy::TxToken for Sent<'_> {
    #[inline]
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, write: F) -> R {
        self.0.send(bytes, write)
    }
}
