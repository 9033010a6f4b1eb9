//! Predicts what coalescing would do to captured traffic, without touching a machine.
//!
//! The engine is the one that runs live, unchanged: the report says what `rxo run` would do with
//! the same packets at the same times.
//!
//! * [`advice`] chooses the smallest settings that come close to the best, and translates them for
//!   a Linux host.
//! * [`figure`] draws lines, bars and heat maps as SVG.
//! * [`html`] makes a self-contained page of a report.
//! * [`interleave`] measures how the flows of a capture interleave.
//! * [`parquet`] writes the tables of a report as files.
//! * [`projection`] computes from costs what coalescing would save at other rates.
//! * [`report`] is the result of a study, as data. Text, JSON, HTML and Parquet are made from it.
//! * [`rewrite`] writes captures as the host's stack would see them, and restores the originals.
//! * [`study`] runs engines over the records of captures and fills a report.
//! * [`sweep`] lists the other settings to try in the same pass.
//! * [`tables`] makes tables of a report for further computation.
//! * [`text`] writes a report as text, with tables.
//! * [`verify`] compares two captures, flow by flow.

pub mod advice;
pub mod figure;
pub mod html;
pub mod interleave;
pub mod parquet;
pub mod projection;
pub mod report;
pub mod rewrite;
pub mod study;
pub mod sweep;
pub mod tables;
pub mod text;
pub mod verify;
mod words;
