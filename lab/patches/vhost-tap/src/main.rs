//! A virtual machine's network card as a TAP: `vhost-tap SOCKET TAP` serves one front end on SOCKET, and ends with it.
//!
//! This program is the same with the published `vhost-device-net` and with the patched one, but for the lines that the patch
//! changes: both give and take Ethernet frames by its streams and sinks.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::net::UnixListener;
use tun::{AbstractDevice, Layer};
use vhost_device_net::VhostDeviceNet;

/// The length of the longest frame, in bytes: that of a GSO frame.
const MOST_BYTES: usize = 65_535 + 14;

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, name] = &arguments[..] else {
        return Err(io::Error::other("give SOCKET TAP"));
    };
    let mut config = tun::Configuration::default();
    config.layer(Layer::L2).tun_name(name);
    let tap = Arc::new(tun::create_as_async(&config)?);
    let listener = UnixListener::bind(socket)?;
    println!("{} serves {socket}", tap.tun_name()?);
    let (front_end, _) = listener.accept().await?;
    let device = VhostDeviceNet::from_unix_stream(front_end).await?;

    let frames = stream::try_unfold(Arc::clone(&tap), |tap| async move {
        let mut frame = vec![0; MOST_BYTES];
        let bytes = tap.recv(&mut frame).await?;
        frame.truncate(bytes);
        Ok(Some((Cursor::new(frame), tap)))
    });
    let rx = device.rx().await?;
    let to_guest = frames.forward(rx);
    let from_guest = device.tx().await?.try_for_each(|mut packet| {
        let tap = Arc::clone(&tap);
        async move {
            let mut frame = Vec::with_capacity(MOST_BYTES);
            packet.read_to_end(&mut frame)?;
            drop(packet);
            tap.send(&frame).await.map(drop)
        }
    });
    tokio::try_join!(to_guest, from_guest).map(drop)
}
