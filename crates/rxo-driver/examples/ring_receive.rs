//! Receives frames from a ring, for an instruction counter:
//!
//! ```sh
//! cargo build --release -p rxo-driver --example ring_receive
//! GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x7fffffff \
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*::counted' \
//!   target/release/examples/ring_receive consume 66
//! ```
//!
//! The instructions, divided by the printed number, are the cost of a frame of 66 bytes, from a packed ring, with 64
//! frames a call. `consume` frees each frame before it is given to a batch, as the host's fast path does; `give` puts
//! it into a batch. Both ends are devices of this process: `vhost:` sends, and `virtio:` receives.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rxo_device::{DeviceError, FrameSink, FrameSource, Verdict};
use rxo_driver::{Device, DeviceBuf, DeviceName, DeviceOptions, GuestOptions};
use rxo_frame::{ChecksumStatus, Frame, Instant};

const ROUNDS: usize = 400;
const FRAMES_A_CALL: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, bytes] = &arguments[..] else {
        return Err("give consume or give, and the length of a frame in bytes".into());
    };
    let (consumes, frame) = (way == "consume", vec![7; bytes.parse()?]);
    let (mut sender, mut receiver) = ends()?;
    let (mut received, mut batch) = (0, Vec::new());
    for _ in 0..ROUNDS {
        // Takes back the buffers of the round before.
        sender.source.receive(&mut Vec::new(), 1)?;
        let verified = Frame::new(&frame[..], Instant::ZERO);
        let verified = Frame { checksum: ChecksumStatus::Verified, ..verified };
        sender.sink.transmit((0..FRAMES_A_CALL).map(|_| verified))?;
        received += counted(&mut receiver, &mut batch, consumes)?;
        batch.clear();
    }
    println!("{received}");
    Ok(())
}

/// Receives what has arrived. Callgrind counts only inside this function.
#[inline(never)]
fn counted(
    receiver: &mut Device,
    batch: &mut Vec<Frame<DeviceBuf>>,
    consumes: bool,
) -> Result<usize, DeviceError> {
    let verdict = if consumes { Verdict::Consumed } else { Verdict::Fallback };
    // Without `black_box` the call could become a tail jump, which callgrind would not see as a call.
    let looked = match consumes {
        true => receiver.source.receive_past(batch, 4 * FRAMES_A_CALL, &mut |_| verdict)?.frames(),
        false => receiver.source.receive(batch, 4 * FRAMES_A_CALL)?,
    };
    Ok(black_box(looked))
}

/// Opens both ends of a ring.
fn ends() -> Result<(Device, Device), Box<dyn Error>> {
    let socket = Socket(std::env::temp_dir().join(format!("rxo-ring-{}", std::process::id())));
    let name = |kind| format!("{kind}:{}", socket.0.display()).parse::<DeviceName>();
    let guest = GuestOptions { aggregates: false, ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    let mut sender = Device::open(&name("vhost")?, options)?;
    let receiver = name("virtio")?;
    let opening = thread::spawn(move || Device::open(&receiver, DeviceOptions::default()));
    while !opening.is_finished() {
        // Answers the messages with which the other end sets up the rings.
        sender.source.receive(&mut Vec::new(), 1)?;
        thread::sleep(Duration::from_millis(1));
    }
    let receiver = opening.join().map_err(|_| "the receiving end has panicked")??;
    Ok((sender, receiver))
}

/// The path of a socket, which is removed with it.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _removed = std::fs::remove_file(&self.0);
    }
}
