//! Configures a foreign program through the control socket that all implementations of WireGuard have.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{End, INSIDE, PORT};
use rxo_testbed::error::{Context, Result, failed};
use rxo_testbed::until;

/// Folder of the sockets, as the protocol specifies.
const FOLDER: &str = "/var/run/wireguard";

/// Timeout of an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sets keys, port and peer of the program of `end`.
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

/// Removes the socket of the program for this interface, if it still exists.
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

/// Sends a request, and returns the answer. It ends with an empty line, because the connection may stay open.
fn ask(path: &str, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
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
