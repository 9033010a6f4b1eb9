//! Whole transfers over a bad link: every byte arrives, both ends end; and how fast, as a table.

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Config, State};

use crate::dsl::{ms, stream_byte};
use crate::link::{Link, Network};

fn config() -> Config {
    Config { time_wait: ms(1_000), ..Config::default() }
}

/// What one end does: writes so much, then closes; reads everything and checks it.
#[derive(Default)]
struct Side {
    to_send: u32,
    sent: u32,
    read: u32,
    is_shut: bool,
}

impl Side {
    fn act(&mut self, network: &mut Network, end: usize) {
        let tcp = &mut network.ends[end];
        while self.sent < self.to_send && tcp.send_room() > 0 {
            let until = self.to_send.min(self.sent + 4096);
            let data: Vec<u8> = (self.sent..until).map(stream_byte).collect();
            self.sent += tcp.send(&data).expect("there is room") as u32;
        }
        let is_open = !matches!(tcp.state(), State::Listen | State::SynSent(_));
        if self.sent == self.to_send && !self.is_shut && is_open {
            tcp.shutdown().expect("it is open");
            self.is_shut = true;
        }
        let mut read = 0;
        for byte in tcp.readable().flatten() {
            assert_eq!(*byte, stream_byte(self.read + read), "byte {}", self.read + read);
            read += 1;
        }
        self.read += read;
        tcp.consume(read as usize);
    }
}

/// Runs until both ends are closed; says when the last byte was read, since the start.
fn transfer(network: &mut Network, there: u32, back: u32) -> Duration {
    let mut sides =
        [Side { to_send: there, ..Side::default() }, Side { to_send: back, ..Side::default() }];
    let start = network.now;
    let mut done = Duration::ZERO;
    loop {
        for (end, side) in sides.iter_mut().enumerate() {
            if !matches!(network.ends[end].state(), State::Listen | State::Closed(_)) {
                side.act(network, end);
            }
        }
        if done == Duration::ZERO && sides[1].read == there && sides[0].read == back {
            done = network.now - start;
        }
        if !network.step() {
            break;
        }
        assert!(network.now - start < Duration::from_secs(3_000), "it does not end");
    }
    assert_eq!([sides[1].read, sides[0].read], [there, back]);
    for end in &network.ends {
        assert!(end.is_closed(), "{:?}", end.state());
        assert_eq!(end.receive_failure(), None);
    }
    done
}

trait Ended {
    fn receive_failure(&self) -> Option<rxo_tcp::Failure>;
}

impl Ended for rxo_tcp::Connection<Vec<u8>> {
    fn receive_failure(&self) -> Option<rxo_tcp::Failure> {
        match self.state() {
            State::Closed(closed) => closed.failure,
            _ => None,
        }
    }
}

#[test]
fn every_byte_arrives_both_ways() {
    for seed in 0..12 {
        let poll = if seed % 2 == 0 { Duration::ZERO } else { ms(1) };
        let link = Link { seed, loss: 20, reordering: 50, repetition: 20, poll, ..Link::default() };
        let there = Config { sack: seed % 3 != 0, timestamps: seed % 4 != 0, ..config() };
        let back = Config { nagle: seed % 5 != 0, large_send_bytes: 0, ..config() };
        let mut network = Network::new(link, there, back);
        transfer(&mut network, 100_000 + seed as u32, 60_000 + seed as u32);
    }
}

#[test]
fn small_buffers_and_small_segments_work() {
    for seed in 0..6 {
        let link = Link { seed, loss: 10, reordering: 30, ..Link::default() };
        let small = Config {
            send_buffer_bytes: 5_000,
            receive_buffer_bytes: 3_000,
            receive_pieces: 8,
            sent_ranges: 32,
            maximum_segment_size: 300,
            ..config()
        };
        let mut network = Network::new(link, small.clone(), small);
        transfer(&mut network, 30_001, 10_001);
    }
}

/// Aggregates or not, the time a transfer takes is the same within a tenth, without loss.
#[test]
fn aggregates_do_not_slow_a_transfer() {
    let time = |poll| {
        let mut network = Network::new(Link { poll, ..Link::default() }, config(), config());
        transfer(&mut network, 1_000_000, 0)
    };
    let (alone, together) = (time(Duration::ZERO), time(Duration::from_micros(500)));
    let ratio = together.as_secs_f64() / alone.as_secs_f64();
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// Throughput in kbit/s of 1 MB at 100 Mbit/s and 20 ms, by loss, reordering and settings.
/// `RXO_SNAPSHOT=write` writes the table anew; its changes are to be read as a diff.
#[test]
fn throughput_by_loss_and_reordering() {
    let mut table = String::from(
        "1 MB at 100 Mbit/s, 20 ms round trip; kbit/s. Shares are of 1000 segments.\n\n\
         settings             loss  reordered 0        10        50\n",
    );
    let reno = Config { congestion: Algorithm::Reno, ..config() };
    let without_sack = Config { sack: false, timestamps: false, ..config() };
    let rows = [("cubic, sack", config()), ("reno, sack", reno), ("cubic, no sack", without_sack)];
    for (name, settings) in rows {
        for loss in [0, 1, 10, 30] {
            table += &format!("{name:<20} {loss:>4}");
            for reordering in [0, 10, 50] {
                let link = Link { seed: 7, loss, reordering, ..Link::default() };
                let mut network = Network::new(link, settings.clone(), config());
                let time = transfer(&mut network, 1_000_000, 0);
                table += &format!(" {:>11.0}", 8_000.0 / time.as_secs_f64());
            }
            table.push('\n');
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stories/throughput.txt");
    if std::env::var_os("RXO_SNAPSHOT").is_some_and(|value| value == "write") {
        std::fs::write(path, &table).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(table, kept, "RXO_SNAPSHOT=write writes it anew");
}
