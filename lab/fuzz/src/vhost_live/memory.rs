//! Memory of the front end: a file that is mapped by the device, and written here by its descriptor.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use rustix::fs::{MemfdFlags, memfd_create};

/// Size of the memory.
pub(super) const BYTES: u64 = 1 << 16;

/// Memory without holes. Its name is found in the lists of what this process has mapped and open.
pub(super) fn memory(label: &str) -> File {
    let memory = File::from(memfd_create(label, MemfdFlags::CLOEXEC).expect("a memfd"));
    put(&memory, 0, &[0; BYTES as usize]);
    memory
}

/// Writes, as far as the system lets it.
pub(super) fn put(memory: &File, at: u64, bytes: &[u8]) {
    _ = memory.write_all_at(bytes, at);
}

/// Whether the process has memory of that name mapped or open.
pub(super) fn traces(label: &str) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let name = format!("memfd:{label} ");
    let is_open = |entry: std::io::Result<std::fs::DirEntry>| {
        let link = entry.and_then(|entry| std::fs::read_link(entry.path()));
        link.is_ok_and(|link| link.to_string_lossy().contains(&name))
    };
    let mut files = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    maps.contains(&name) || files.any(is_open)
}

/// A word of the memory that is written again and again.
pub(super) struct Place {
    pub(super) at: u64,
    pub(super) value: u16,
}

/// The thread that does so.
pub(super) struct Scribbler {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Scribbler {
    /// Starts, and waits until it writes.
    pub(super) fn start(memory: File, places: Vec<Place>) -> Self {
        let (stop, begun) = (Arc::<AtomicBool>::default(), Arc::new(Barrier::new(2)));
        let (stopped, begins) = (Arc::clone(&stop), Arc::clone(&begun));
        let thread = thread::spawn(move || {
            begins.wait();
            let mut value = 0_u16;
            while !places.is_empty() && !stopped.load(Ordering::Relaxed) {
                for place in &places {
                    // Every other time what was meant, so that rings also work.
                    put(&memory, place.at, &(place.value ^ value).to_le_bytes());
                }
                value = value.wrapping_add(1) % 4;
            }
        });
        begun.wait();
        Self { thread, stop }
    }

    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only writes");
    }
}
