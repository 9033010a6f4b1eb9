//! A log before the host (`--tap`) contains every received frame, including those that the fast path
//! consumes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rxo_device::middleware::{Direction, PacketLog, TracedSource};
use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame, Gather, Instant};
use rxo_host::{FastModules, Host};
use rxo_tcp::AckPolicy;

use crate::world::{config, drain, fill, options, pattern, server};

/// A log that stores the bytes of all packets.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Vec<u8>>>>);

impl PacketLog for Log {
    fn log<'a, G: Gather<'a>>(&self, packet: G, direction: Direction, _at: Instant) {
        assert_eq!(direction, Direction::In);
        let mut bytes = Vec::new();
        packet.for_each_slice(|piece| bytes.extend_from_slice(piece));
        self.0.lock().unwrap().push(bytes);
    }

    fn take_notice(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_log_has_consumed_acks_once() {
    let plain = MemoryOptions { gso_bytes: 0, ..options() };
    let (there, back, log) = (MemoryLink::new(plain), MemoryLink::new(plain), Log::default());
    let mut ours = config("10.0.0.1/24");
    ours.fast_path.modules = FastModules::PURE_ACK;
    let source = TracedSource::new(back.source(), log.clone());
    let mut sender = Host::new(source, there.sink(), ours).unwrap();
    let mut theirs = config("10.0.0.2/24");
    theirs.tcp.acks = AckPolicy::EverySecondSegment;
    let mut peer = Host::new(there.source(), back.sink(), theirs).unwrap();
    let listener = peer.handle().listen(server(), 1).unwrap();
    let stream = sender.handle().connect_nonblocking(server()).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut now = Instant::from_micros(1_000_000);
    (0..3).for_each(|_| {
        sender.turn(now).unwrap();
        peer.turn(now).unwrap();
    });
    let (accepted, _) = listener.accept().unwrap();
    accepted.set_nonblocking(true).unwrap();
    log.0.lock().unwrap().clear();
    let (data, mut written, mut read, mut arrived) = (pattern(500_000), 0, 0, Vec::new());
    while read < data.len() || stream.statistics().snd_una != stream.statistics().snd_nxt {
        written += fill(&stream, &data[written..]);
        sender.turn(now).unwrap();
        peer.turn(now).unwrap();
        read += drain(&accepted).unwrap().0.len();
        for sent in back.take_all() {
            let frame = Frame::new(&sent.bytes[..], now);
            back.push(&Frame { checksum: ChecksumStatus::Verified, ..frame });
            arrived.push(sent.bytes);
        }
        now = now + Duration::from_micros(100);
    }
    sender.turn(now).unwrap();
    let counters = sender.counters();
    assert!(counters.fast.consumed > 100, "{:?}", counters.fast);
    assert_eq!(log.0.lock().unwrap().len(), arrived.len());
    assert!(*log.0.lock().unwrap() == arrived, "in order, bit for bit");
}
