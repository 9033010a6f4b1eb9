//! A report as one HTML file that needs nothing else: no network, and no script to be read.
//!
//! [`page()`] makes it of sections, one module each: what they say is decided there, how it looks in
//! `templates/report.{html,css,js}`. All numbers are the report's own; here they are only written
//! out. Whatever comes from file names or captures is escaped by the template or by
//! [`figure`](crate::figure), and the page's content security policy forbids any script but its
//! own and any request.

mod advice;
mod aggregates;
mod course;
mod flows;
mod page;
mod polls;
mod projection;
mod prose;
mod reasons;
mod sweep;
mod table;
mod traffic;

pub use page::{HtmlError, page, write};
