//! Tests of a kind of device that rxo does not have, from its table row to its frames. It is named by a path,
//! its link layer and MTU are known only once it is open, and it has two descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rxo_device::{FrameSink, SinkCapabilities, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, LinkKind, Pool};
use rxo_vnet::VNET_HEADER_BYTES;

use super::*;
use crate::fault;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Writev, Written};
use crate::wait::{Interest, WaitList};

static TABLE: &[DeviceKind] = &[
    crate::packet::KIND,
    DeviceKind {
        prefix: "socket",
        placeholder: "PATH",
        interface: None,
        link: None,
        check_name: |name| match name.starts_with('/') {
            true => Ok(()),
            false => Err("names no socket: give an absolute path"),
        },
        inherit: None,
        queues: None,
        survey: |_| Ok(None),
        attach: |name| Ok(Box::new(Socket(name.clone()))),
    },
];

/// A device that carries frames as datagrams of a unix socket, each after a `virtio_net_hdr`.
#[derive(Debug)]
struct Socket(DeviceName);

impl DeviceHandle for Socket {
    fn open(&self, _: DeviceOptions) -> Result<Device, DeviceError> {
        let connected = || {
            let path = Path::new(self.0.name());
            let socket = UnixDatagram::bind(path.with_extension("end"))?;
            socket.connect(path)?;
            socket.set_nonblocking(true)?;
            Ok((socket, UnixDatagram::unbound()?))
        };
        let label = self.0.to_string();
        let (data, control) = connected().map_err(|error| fault::opening(&label, error))?;
        let data = Arc::new(data);
        let source = Receiver { data: Arc::clone(&data), control, pool: Pool::new(8, 2_048) };
        let writer = Writev::new(Arc::clone(&data));
        Ok(Device {
            source: Box::new(source),
            sink: DeviceSink::new(Sender { label, data, writer }),
        })
    }
}

#[derive(Debug)]
struct Receiver {
    data: Arc<UnixDatagram>,
    control: UnixDatagram,
    pool: Pool,
}

impl FrameSource for Receiver {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        let (link, mtu) = (LinkKind::RawIp, 1_300);
        SourceCapabilities { link, mtu, gives_gso: false }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let before = batch.len();
        for _ in 0..budget {
            let Some(mut buffer) = self.pool.take() else { break };
            let Ok(bytes) = self.data.recv(&mut buffer) else { break };
            buffer.truncate(bytes);
            batch.push(Frame::new(DeviceBuf::pooled(buffer), Instant::ZERO));
        }
        Ok(batch.len() - before)
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters::default()
    }
}

impl Descriptors for Receiver {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.control.as_fd());
        visit(self.data.as_fd());
    }
}

impl SystemSource for Receiver {}

#[derive(Debug)]
struct Sender {
    label: String,
    data: Arc<UnixDatagram>,
    writer: Writev<UnixDatagram>,
}

impl Port for Sender {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::RawIp,
            mtu: 1_300,
            gso_bytes: 0,
            segments_udp: false,
            segments_tunnels: false,
            completes_checksums: false,
            expands_acks: false,
        }
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn interface(&self) -> Option<&Interface> {
        None
    }

    fn device_error(&self, error: io::Error) -> Option<DeviceError> {
        Some(fault::system(format!("{} failed", self.label), error))
    }

    fn is_batched(&self) -> bool {
        false
    }
}

impl Writer for Sender {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        self.writer.write(batch, from)
    }
}

impl Descriptors for Sender {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.data.as_fd());
    }
}

/// A temporary folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn listen(&self, name: &str) -> (PathBuf, UnixDatagram) {
        let path = self.0.join(name);
        let peer = UnixDatagram::bind(&path).unwrap();
        (path, peer)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn name_of(path: &Path) -> DeviceName {
    DeviceName::parse(TABLE, &format!("socket:{}", path.display())).unwrap()
}

#[test]
fn a_row_is_enough_to_name_survey_and_open_a_device() {
    let folder = Folder::new("row");
    let (path, _peer) = folder.listen("a-name-longer-than-an-interface");
    let name = name_of(&path);
    assert_eq!(name.to_string(), format!("socket:{}", path.display()));
    assert_eq!((name.kind().interface, name.kind().link), (None, None));
    assert_eq!(name.survey().unwrap(), None);
    let device = Device::open(&name, DeviceOptions::default()).unwrap();
    let (source, sink) = (device.source.capabilities(), device.sink.capabilities());
    assert_eq!((source.link, source.mtu), (LinkKind::RawIp, 1_300));
    assert_eq!((sink.link, sink.mtu), (LinkKind::RawIp, 1_300));
}

#[test]
fn the_table_says_which_names_there_are() {
    let forms = "packet:IFNAME or socket:PATH";
    for (text, part) in [("socket:a", "absolute path"), ("tap:a", forms)] {
        let line = DeviceName::parse(TABLE, text).unwrap_err().to_string();
        assert!(line.contains(text) && line.contains(part), "{line}");
    }
}

#[test]
fn any_source_goes_with_any_sink() {
    let folder = Folder::new("mixed");
    let [(from_path, from), (to_path, to)] = ["a", "b"].map(|name| folder.listen(name));
    let opened = [&from_path, &to_path]
        .map(|path| Device::open(&name_of(path), DeviceOptions::default()).unwrap());
    let [gives, takes] = opened;
    let mut mixed = Device { source: gives.source, sink: takes.sink };
    let sent = [&[0; VNET_HEADER_BYTES][..], &[0x45; 60]].concat();
    from.send_to(&sent, from_path.with_extension("end")).unwrap();

    let mut list = WaitList::new();
    let ready = list.add(Some(&mixed.source), Interest::Readable);
    assert_eq!(ready.len(), 2, "both descriptors are waited for");
    assert!(list.wait(None).unwrap().has_any(ready));
    let mut batch = Vec::new();
    assert_eq!(mixed.source.receive(&mut batch, 8).unwrap(), 1);
    mixed.sink.transmit(batch.iter().map(Frame::borrowed)).unwrap();
    let mut seen = [0; 200];
    let bytes = to.recv(&mut seen).unwrap();
    assert_eq!(seen[..bytes], sent);
    assert_eq!(mixed.sink.counters().frames, 1);
}

/// One write takes the whole batch, so the kind of device is looked up once per batch, not per frame.
#[test]
fn a_sink_is_dispatched_once_a_batch() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug)]
    struct Counted(Sender, Arc<AtomicUsize>);

    impl Writer for Counted {
        fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
            self.1.fetch_add(1, Ordering::Relaxed);
            let sent = batch.list().len() - from;
            Written { sent, submissions: 1, ..Written::default() }
        }
    }

    impl Descriptors for Counted {
        fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
            self.0.visit_descriptors(visit);
        }
    }

    impl Port for Counted {
        fn capabilities(&self) -> SinkCapabilities {
            self.0.capabilities()
        }

        fn label(&self) -> &str {
            self.0.label()
        }

        fn interface(&self) -> Option<&Interface> {
            None
        }

        fn device_error(&self, error: io::Error) -> Option<DeviceError> {
            self.0.device_error(error)
        }

        fn is_batched(&self) -> bool {
            true
        }
    }

    let data = Arc::new(UnixDatagram::unbound().unwrap());
    let writer = Writev::new(Arc::clone(&data));
    let writes = Arc::new(AtomicUsize::new(0));
    let sender = Sender { label: "counted".to_owned(), data, writer };
    let mut sink = DeviceSink::new(Counted(sender, Arc::clone(&writes)));
    let frame = Frame::new(&[0x45; 60][..], Instant::ZERO);
    sink.transmit([frame; 64].into_iter()).unwrap();
    assert_eq!((sink.counters().frames, writes.load(Ordering::Relaxed)), (64, 1));
}
