//! The output and the errors of commands.
//!
//! Human-readable [`numbers`] and durations, plain text [`table`]s, standard [`output`] as lines or as JSON, a
//! [`printer`] and a [`log`] that never wait for their readers, checks of [`paths`] for results, quoting for a
//! [`shell`], [`files`] that are complete or absent, the [`output_file`] of a command, and errors classified by
//! [`fault`].
//!
//! # Examples
//! ```
//! use rxo_console::numbers::{grouped, parse_bytes};
//! use rxo_console::table::Table;
//!
//! let mut table = Table::new(&["path", "bytes"]);
//! let bytes = parse_bytes("64KiB").ok_or("no number of bytes")?;
//! table.row(["rxo".to_owned(), grouped(bytes)]);
//! assert_eq!(table.render(), "path   bytes\nrxo   65,536");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod fault;
pub mod files;
mod lines;
pub mod log;
pub mod numbers;
pub mod output;
pub mod output_file;
pub mod paths;
pub mod printer;
pub mod shell;
pub mod table;
