//! Numbered datagrams at a constant rate. The receiver checks every byte, and counts missing and repeated ones.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rxo_testbed::error::{Context, Result};
use rxo_testbed::{Namespace, Worker};

/// A sender and a receiver of datagrams. Dropping it ends both.
#[derive(Debug)]
pub struct DatagramFlow {
    sender: Worker<u32>,
    receiver: Worker<Received>,
    stop_sending: Arc<AtomicBool>,
    stop_receiving: Arc<AtomicBool>,
}

/// The result of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramReport {
    /// Datagrams that the sender's kernel took.
    pub sent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams that had arrived before.
    pub repeated: u64,
    /// Datagrams that arrived after a later one.
    pub late: u64,
    /// Datagrams with a wrong byte or length.
    pub wrong: u64,
}

/// The state of the receiver.
#[derive(Debug, Default)]
struct Received {
    /// For each number, true if its datagram has arrived.
    numbers: Vec<bool>,
    report: DatagramReport,
}

impl DatagramFlow {
    /// Sends `per_ms` datagrams every millisecond, or as many as the machine has time for, from `from` to `address` in
    /// namespace `to`.
    ///
    /// # Errors
    /// If a socket or a thread cannot be created.
    pub fn start(from: &Namespace, to: &Namespace, address: IpAddr, per_ms: u32) -> Result<Self> {
        let at = |address: IpAddr| UdpSocket::bind(SocketAddr::new(address, 0));
        let socket = to.run(|| {
            let socket = at(address)?;
            socket.set_read_timeout(Some(TICK))?;
            io::Result::Ok(socket)
        })?;
        let socket = socket.context(|| format!("cannot receive datagrams at {address}"))?;
        let target = socket.local_addr().context(|| "a socket has no address".into())?;
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
        let outgoing = from.run(|| at(any))?.context(|| "cannot send datagrams".into())?;
        let [stop_sending, stop_receiving] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&stop_receiving);
        let receiver = Worker::start("lab-receive", None, move || receive(&socket, &is_over))?;
        let is_over = Arc::clone(&stop_sending);
        let send = move || Ok(send(&outgoing, target, per_ms, &is_over));
        let sender = Worker::start("lab-send", None, send)?;
        Ok(Self { sender, receiver, stop_sending, stop_receiving })
    }

    /// Stops sending, without waiting. Datagrams on their way still arrive.
    pub fn stop_sending(&self) {
        self.stop_sending.store(true, Ordering::Relaxed);
    }

    /// Receives the datagrams that have arrived, and ends.
    ///
    /// # Errors
    /// If the receiver's socket fails.
    pub fn finish(self) -> Result<DatagramReport> {
        self.stop_sending();
        let sent = self.sender.finish()?;
        self.stop_receiving.store(true, Ordering::Relaxed);
        Ok(self.receiver.finish()?.report(sent))
    }
}

/// Returns the payload of the datagram `number`. Each has its own, and every twentieth is shorter.
#[must_use]
pub fn datagram(number: u32) -> Vec<u8> {
    let words: u32 = if number % 20 == 19 { 125 } else { 300 };
    (0..words)
        .flat_map(|word: u32| (number ^ word.wrapping_mul(0x9e37_79b1)).to_be_bytes())
        .collect()
}

fn send(socket: &UdpSocket, target: SocketAddr, per_ms: u32, stop: &AtomicBool) -> u32 {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..per_ms {
            // A datagram for which the kernel had no buffer was not sent, so its number is used again.
            number += u32::from(socket.send_to(&datagram(number), target).is_ok());
        }
        thread::sleep(Duration::from_millis(1));
    }
    number
}

fn receive(socket: &UdpSocket, stop: &AtomicBool) -> Result<Received> {
    let (mut received, mut buffer) = (Received::default(), [0; 2_048]);
    loop {
        match socket.recv(&mut buffer) {
            Ok(bytes) => received.take(&buffer[..bytes]),
            Err(error) if is_timeout(&error) && stop.load(Ordering::Relaxed) => {
                return Ok(received);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error).context(|| "cannot receive datagrams".into()),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Received {
    fn take(&mut self, bytes: &[u8]) {
        let number = bytes.first_chunk().map(|number| u32::from_be_bytes(*number));
        let Some(number) = number.filter(|&number| bytes == datagram(number)) else {
            self.report.wrong += 1;
            return;
        };
        let at = number as usize;
        if self.numbers.get(at) == Some(&true) {
            self.report.repeated += 1;
            return;
        }
        self.report.late += u64::from(at < self.numbers.len());
        self.numbers.resize(self.numbers.len().max(at + 1), false);
        self.numbers[at] = true;
        self.report.received += 1;
    }

    /// Makes the report. A datagram that was never sent counts as wrong.
    fn report(self, sent: u32) -> DatagramReport {
        let beyond = self.numbers.iter().skip(sent as usize).filter(|&&came| came).count() as u64;
        DatagramReport {
            sent: sent.into(),
            received: self.report.received - beyond,
            wrong: self.report.wrong + beyond,
            ..self.report
        }
    }
}

/// The time between two checks of the stop flag.
const TICK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn report(numbers: &[u32], sent: u32) -> DatagramReport {
        let mut received = Received::default();
        numbers.iter().for_each(|&number| received.take(&datagram(number)));
        received.report(sent)
    }

    #[test]
    fn missing_repeated_and_late_datagrams_are_told_apart() {
        let seen = report(&[0, 2, 1, 1, 4], 6);
        let expected = DatagramReport { sent: 6, received: 4, repeated: 1, late: 1, wrong: 0 };
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_wrong_byte_a_cut_and_an_unsent_number_are_wrong() {
        let mut received = Received::default();
        let mut bytes = datagram(3);
        received.take(&bytes[..100]);
        received.take(&[]);
        bytes[700] ^= 1;
        received.take(&bytes);
        assert_eq!(received.report(4).wrong, 3);
        assert_eq!((report(&[0, 9], 1).wrong, report(&[0, 9], 1).received), (1, 1));
    }
}
