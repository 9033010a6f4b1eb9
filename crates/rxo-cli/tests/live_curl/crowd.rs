//! Many clients at once: Linux sockets, a thread each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::server::{Server, bytes};

pub(crate) const TESTS: &[Test] = &[("four_hundred_clients_at_once", crowd)];

const CLIENTS: usize = 400;
const PATIENCE: Duration = Duration::from_secs(60);

fn crowd() {
    let content = bytes(100_001);
    let mut server = Server::start("crowd", &[("file", &content)]);
    // Everybody is connected before anybody asks.
    let all_there = Barrier::new(CLIENTS);
    server
        .lab
        .peer()
        .run(|| {
            thread::scope(|scope| {
                let client = || ask(&all_there, &content);
                let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        })
        .unwrap();
    for _ in 0..2 * CLIENTS {
        let access = server.next_access();
        assert_eq!(access["status"], 200, "{access}");
        assert_eq!(access["complete"], true, "{access}");
    }
}

/// Asks twice over one connection.
fn ask(all_there: &Barrier, content: &[u8]) {
    let address = "10.77.0.2:80".parse().unwrap();
    let client = TcpStream::connect_timeout(&address, PATIENCE);
    all_there.wait();
    let mut client = client.unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    for _ in 0..2 {
        client.write_all(b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line == "\r\n" {
                break;
            }
            lines.push(line);
        }
        assert_eq!(lines[0], "HTTP/1.1 200 OK\r\n");
        let mut got = vec![0; content.len()];
        reader.read_exact(&mut got).unwrap();
        assert!(got == content);
    }
}
