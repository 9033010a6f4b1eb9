//! Predicts the effect of coalescing on captured traffic, without touching a machine.
//!
//! ```text
//!  captures ── Study ──▶ Report ── text, html, parquet, tables, figure
//!  captures ── Coalescer ──▶ a coalesced capture ── Expander ──▶ the original, byte for byte
//!  two captures ── Comparison ──▶ ComparisonResult
//! ```
//!
//! The engine is the same code that `rxo run` uses on live traffic. The report predicts the result of `rxo run`
//! for the same packets at the same times.
//!
//! * [`advice`] chooses the smallest settings that come close to the best, and translates them for
//!   a Linux host.
//! * [`html`] makes a self-contained HTML page from a report.
//! * `parquet` writes the tables of a report as files (feature `parquet`).
//! * [`projection`] computes the savings of coalescing at other rates from the costs of receiving.
//! * [`report`] is the result of a study, as data. Text, JSON, HTML and Parquet are made from it.
//! * [`rewrite`] writes captures as the host's stack would see them, and restores the originals.
//! * [`study`] runs engines over the records of captures and fills a report; [`study::compare`] runs several
//!   policies over the same packets and fills one table.
//! * [`sweep`] lists the other settings to try in the same pass.
//! * `tables` makes tables from a report for further computation (feature `arrow`).
//! * [`text`] writes a report as text, with tables.
//! * [`verify`] compares two captures, flow by flow.
//!
//! # Examples
//! ```
//! use std::io::Cursor;
//!
//! use rxo_capture::{Capture, CaptureWriter, Interface, LinkType, Packet};
//! use rxo_coalesce::Policy;
//! use rxo_frame::Instant;
//! use rxo_trace::study::{Point, Settings, Study};
//! # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
//! # use rxo_wire::{SeqNumber, TcpFlags, checksum::Summer};
//!
//! # let mut writer = CaptureWriter::new(Vec::new(), "an example")?;
//! # let raw_ip = Interface { link: LinkType::RAW, snap_bytes: None, name: None };
//! # let interface = writer.add_interface(&raw_ip)?;
//! # for n in 0..20_u16 {
//! #     let seq = SeqNumber(u32::from(n) * 1_000);
//! #     let tcp = TcpHeader { seq, flags: TcpFlags::ACK, ..TcpHeader::default() };
//! #     let payload_bytes = 20 + 1_000;
//! #     let ip = Ipv4Header { protocol: 6, payload_bytes, id: n, ..Ipv4Header::default() };
//! #     let mut packet = vec![0; 40 + 1_000];
//! #     let rest = ip.write(&mut packet)?;
//! #     tcp.write(rest)?;
//! #     write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
//! #     let at = Instant::from_micros(n.into());
//! #     let pieces = &[&packet[..]][..];
//! #     let original_bytes = packet.len() as u32;
//! #     let (direction, comments, custom) = (None, &[][..], &[][..]);
//! #     writer.write(&Packet {
//! #         interface, at, original_bytes, pieces, direction, comments, custom,
//! #     })?;
//! # }
//! # let file = writer.finish()?;
//! // `file` has 20 segments of one flow, a microsecond apart.
//! let mut capture = Capture::from_reader("traffic", Box::new(Cursor::new(file)))?;
//! let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse()? };
//! let mut study = Study::new(Settings::new(point))?;
//! study.read(&mut capture, |_position| true);
//! let report = study.finish(None);
//! assert_eq!((report.outcome.packets, report.outcome.deliveries), (20, 1));
//! assert!(rxo_trace::text::text(&report).contains("95.0 % fewer"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod advice;
mod figure;
pub mod html;
mod numbered;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod projection;
pub mod report;
pub mod rewrite;
pub mod study;
pub mod sweep;
#[cfg(feature = "arrow")]
pub mod tables;
pub mod text;
pub mod verify;
mod words;
