//! The output and the errors of commands.
//!
//! [`numbers`] and times as people read and write them, plain text [`table`]s, standard [`output`] as lines
//! or as JSON, a [`printer`] and a [`log`] that never wait for their readers, checks of [`paths`] for
//! results, quoting for a [`shell`], [`files`] that are complete or absent, the [`output_file`] of a command,
//! and errors classified by [`fault`].

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
