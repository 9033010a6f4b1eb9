//! A report as a single HTML file, which is readable without network access and without scripts.
//!
//! [`page()`] builds it from sections, one module each; [`fragment()`] is what a notebook shows of it. The sections have the text;
//! `templates/report.{html,css,js}` decide how it looks. All numbers come from the report, and are only
//! formatted here. The template and `figure` escape everything that comes from file names or
//! captures, and the page's content security policy forbids all requests and all scripts but its own.

mod advice;
mod aggregates;
mod course;
mod flows;
mod fragment;
mod live;
mod page;
mod polls;
mod projection;
mod prose;
mod reasons;
mod sweep;
mod table;
mod traffic;

pub use fragment::fragment;
pub use page::{HtmlError, page, write};
