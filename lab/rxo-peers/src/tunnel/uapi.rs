//! Configures a program of others by the socket that all implementations of WireGuard have.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{End, INSIDE, PORT};
use rxo_testbed::error::{Context, Result, failed};
use rxo_testbed::until;

/// The folder of the sockets, by the protocol.
const FOLDER: &str = "/var/run/wireguard";

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives the program of `end` its keys, its port and its peer.
pub(super) fn configure(end: &End<'_>) -> Result<()> {
    let path = path(&end.interface);
    until(|| Ok(UnixStream::connect(&path).is_ok()))?
        .context(|| format!("{} has no socket at {path}", end.program.kind().name()))?;
    let answer = ask(&path, &request(end)).context(|| format!("cannot ask {path}"))?;
    match answer.lines().find_map(|line| line.strip_prefix("errno=")) {
        Some("0") => Ok(()),
        _ => Err(failed(format!("{path} refuses its settings: {answer}"))),
    }
}

/// Removes the socket of the program that had this interface, if it is still there.
pub(super) fn remove(interface: &str) {
    let _gone_already = std::fs::remove_file(path(interface));
}

fn path(interface: &str) -> String {
    format!("{FOLDER}/{interface}.sock")
}

fn request(end: &End<'_>) -> String {
    let allowed: String =
        INSIDE.iter().map(|(ip, bits)| format!("allowed_ip={ip}/{bits}\n")).collect();
    format!(
        "set=1\nprivate_key={}\nlisten_port={PORT}\nreplace_peers=true\npublic_key={}\n\
         endpoint={}:{PORT}\nreplace_allowed_ips=true\n{allowed}\n",
        end.keys.private_hex, end.peer.public_hex, end.peer_outside,
    )
}

/// An answer ends with an empty line; the connection may stay open.
fn ask(path: &str, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut piece) = (String::new(), [0; 512]);
    while !answer.ends_with("\n\n") {
        let bytes = stream.read(&mut piece)?;
        if bytes == 0 {
            break;
        }
        answer.push_str(&String::from_utf8_lossy(&piece[..bytes]));
    }
    Ok(answer)
}
