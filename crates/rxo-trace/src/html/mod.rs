//! A report as a single HTML file, which is readable without network access and without scripts.
//!
//! [`page()`] builds the file from sections, one module each; [`fragment()`] makes the part that a notebook
//! shows. The sections contain the text, and `templates/report.{html,css,js}` determine the layout. All numbers
//! come from the report, and are only formatted here. The template and `figure` escape everything that comes
//! from file names or captures, and the page's content security policy forbids all requests and all scripts but
//! its own.

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
