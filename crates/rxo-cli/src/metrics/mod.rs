//! `--metrics ADDR:PORT|unix:PATH`: exports the counters of a running command to Prometheus.
//!
//! The counters come from the JSON of `rxo ctl SOCKET counters`. A [`table`] maps them to series; [`series`]
//! takes their values out of that JSON, and [`text`] writes them. Nothing is counted here. [`rxo_control`]
//! serves the clients, within its limits, on its own thread; the worker answers as it does for `rxo ctl`.

mod address;
#[cfg(test)]
mod kept;
mod series;
mod table;
mod text;

use std::sync::Arc;

use anyhow::{Context, Result};
use rxo_control::{Page, Refusal, Server};
use serde_json::Value;

pub(crate) use self::address::{Address, MetricsListener};

/// A function that reads all counters of a command.
pub(crate) type Counters = Arc<dyn Fn() -> Result<Value, Refusal> + Send + Sync>;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A metrics socket that is served until this value is dropped, which removes the socket's file.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The server that answers clients. This field is declared before the socket, so that it is
    /// dropped first: as long as the socket's file exists, the process answers.
    _server: Server,
    _listener: MetricsListener,
}

/// Starts to serve the counters of `command` to the clients that connect to the socket `listener`. Dropping the
/// result stops the server.
///
/// # Errors
/// If no thread can be started, or the descriptor cannot be copied.
pub(crate) fn serve(
    listener: MetricsListener,
    command: &'static str,
    counters: Counters,
) -> Result<Metrics> {
    let text = move || {
        let counted = counters().map_err(|refusal| refusal.0)?;
        text::written(VERSION, command, series::of(table::ROWS, &counted))
            .map_err(|error| error.to_string())
    };
    let page = Page { path: "/metrics", content_type: text::CONTENT_TYPE, text };
    let server = Server::of_page(listener.socket().context("--metrics")?, page);
    let server = server.context("cannot serve --metrics")?;
    Ok(Metrics { _server: server, _listener: listener })
}
