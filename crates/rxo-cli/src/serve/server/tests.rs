//! Many clients at once, over real sockets.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use super::super::root::Root;
use super::*;

impl Door for TcpListener {
    type Client = TcpStream;

    fn accept_within(&self, time: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        self.set_nonblocking(true)?;
        match self.accept() {
            Ok((client, peer)) => {
                client.set_nonblocking(false)?;
                Ok(Some((client, peer)))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(time.min(Duration::from_millis(2)));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Asks twice over one connection, and says whether that was kept after the second answer.
fn ask_twice(address: SocketAddr) -> bool {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut is_kept = true;
    for _ in 0..2 {
        client.write_all(b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            lines.push(line);
        }
        assert!(lines[0].contains("200 OK"), "{lines:?}");
        let mut content = [0; 5];
        reader.read_exact(&mut content).unwrap();
        assert_eq!(&content, b"hello");
        is_kept = !lines.iter().any(|line| line.contains("close"));
        if !is_kept {
            break;
        }
    }
    is_kept
}

#[test]
fn more_clients_than_places_are_all_served() {
    let www = std::env::temp_dir().join(format!("rxo-server-{}", std::process::id()));
    fs::create_dir_all(&www).unwrap();
    fs::write(www.join("file"), b"hello").unwrap();
    let logged = Arc::new(Mutex::new(0));
    let count = Arc::clone(&logged);
    let shared = Arc::new(Shared {
        site: Site::new(Root::open(&www).unwrap()),
        limits: Limits::default(),
        places: Places::new(4),
        stop: Arc::new(AtomicBool::new(false)),
        log: Box::new(move |_| *count.lock().unwrap() += 1),
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn({
        let shared = Arc::clone(&shared);
        move || serve(&listener, &shared)
    });
    let clients: Vec<_> = (0..20).map(|_| thread::spawn(move || ask_twice(address))).collect();
    let kept: Vec<bool> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(kept.contains(&false), "while others wait, connections are not kept");
    shared.stop.store(true, Ordering::Relaxed);
    server.join().unwrap().unwrap();
    assert!(*logged.lock().unwrap() >= 20);
    fs::remove_dir_all(www).unwrap();
}
