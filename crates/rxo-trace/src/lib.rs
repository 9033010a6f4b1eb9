//! What coalescing would do to captured traffic, before anybody touches a machine.
//!
//! The engine is the one that runs live, unchanged: what is reported here is what `rxo run` would
//! do with the same packets at the same times.
//!
//! * [`advice`] chooses the smallest settings that come close to the best, and says what they mean
//!   for a Linux host.
//! * [`figure`] draws lines, bars and heat maps as SVG.
//! * [`files`] writes files that are whole or not there.
//! * [`html`] makes a page of a report that can be read anywhere.
//! * [`interleave`] says how flows follow each other in a capture.
//! * [`parquet`] makes tables of a report, to compute on.
//! * [`projection`] says what coalescing would save at other rates, from costs.
//! * [`report`] is what a study found, as data: tables, HTML, JSON and Parquet are made from it.
//! * [`rewrite`] writes captures as the host's stack would see them, and gives the originals back.
//! * [`study`] runs engines over the records of captures and fills a report.
//! * [`sweep`] says which other settings are tried in the same pass.
//! * [`verify`] says whether two captures say the same, flow by flow.

pub mod advice;
pub mod figure;
pub mod files;
pub mod html;
pub mod interleave;
pub mod parquet;
pub mod projection;
pub mod report;
pub mod rewrite;
pub mod study;
pub mod sweep;
pub mod verify;
mod words;
