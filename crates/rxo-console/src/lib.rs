//! Output and errors of commands.
//!
//! [`numbers`] and times as people read and write them, plain text [`table`]s, standard [`output`]
//! as lines or as JSON, a [`printer`] and a [`log`] that never wait for their readers, [`paths`] that results go to,
//! words for a [`shell`], [`files`] that are complete or absent, the [`output_file`] of a command, and errors by whose
//! [`fault`] they are.
//! Separate from `rxo-cli` because `rxo-demo` and the experiments of `rxo-lab` print in the same way.

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
