//! Many clients at once, over real sockets.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

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
        root: Root::open(&www).unwrap(),
        limits: Limits { idle: Duration::from_secs(300), ..Limits::default() },
        places: Places::new(4, 4),
        stop: Arc::new(AtomicBool::new(false)),
        log: Box::new(move |_| *count.lock().unwrap() += 1),
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn({
        let shared = Arc::clone(&shared);
        move || serve(&listener, &shared, || ())
    });
    // Three say nothing, so that whoever gets the last place finds all taken.
    let silent = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    let clients: Vec<_> = (0..20).map(|_| thread::spawn(move || ask_twice(address))).collect();
    let kept: Vec<bool> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(kept, [false; 20], "while no place is free, connections are not kept");
    // A client may have its answer before that is logged.
    let begun = Instant::now();
    while *logged.lock().unwrap() < 20 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{logged:?}");
        thread::sleep(Duration::from_millis(5));
    }
    drop(silent);
    shared.stop.store(true, Ordering::Relaxed);
    server.join().unwrap().unwrap();
    assert_eq!(*logged.lock().unwrap(), 20);
    fs::remove_dir_all(www).unwrap();
}

/// One address keeps its share of the places, and what comes beyond is told so; others find room.
#[test]
fn an_address_with_enough_places_is_turned_away() {
    let www = std::env::temp_dir().join(format!("rxo-per-peer-{}", std::process::id()));
    fs::create_dir_all(&www).unwrap();
    fs::write(www.join("file"), b"hello").unwrap();
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&logged);
    let shared = Arc::new(Shared {
        root: Root::open(&www).unwrap(),
        limits: Limits::default(),
        places: Places::new(8, 2),
        stop: Arc::new(AtomicBool::new(false)),
        log: Box::new(move |access| log.lock().unwrap().push(access.text())),
    });
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn({
        let shared = Arc::clone(&shared);
        move || serve(&listener, &shared, || ())
    });
    // They keep their places without a word.
    let held = [(); 2].map(|()| TcpStream::connect(("127.0.0.1", port)).unwrap());
    let mut third = TcpStream::connect(("127.0.0.1", port)).unwrap();
    third.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut told = String::new();
    third.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("Connection: close"), "{told}");
    assert!(!shared.places.are_all_taken());
    drop(held);
    while !ask_once(port) {
        thread::sleep(Duration::from_millis(5));
    }
    shared.stop.store(true, Ordering::Relaxed);
    server.join().unwrap().unwrap();
    assert!(logged.lock().unwrap()[0].contains(" 503 "), "{:?}", logged.lock().unwrap());
    fs::remove_dir_all(www).unwrap();
}

/// Whether a client is let in again.
fn ask_once(port: u16) -> bool {
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let asked = client.write_all(b"GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut told = String::new();
    // One that is turned away may be reset.
    asked.is_ok() && client.read_to_string(&mut told).is_ok() && told.ends_with("hello")
}
