//! Figures: lines, rankings and heat maps as SVG, for pages.
//!
//! A figure is data ([`Figure`], [`Ranking`], [`HeatMap`]), and [`Draw::draw`] draws it. Colours are style
//! classes, so a figure follows the reader's light or dark scheme. Every mark shows its value when pointed at.
//! Every figure has a title and a description for readers who cannot see it. Series differ in shape as well as
//! in colour. The same data always gives the same bytes.
//!
//! The SVG writer is part of this crate, because `plotters` does not suit: it writes colours into every
//! element, so that a figure could not follow the reader's colour scheme, and it supports neither titles nor
//! descriptions.

mod axis;
mod draw;
mod frame;
mod heat;
mod legend;
mod marks;
mod numbers;
mod plot;
mod ranking;
mod series;
mod style;
mod svg;
mod ticks;

#[cfg(test)]
mod tests;

pub(crate) use axis::Axis;
pub(crate) use draw::{Draw, Size};
pub(crate) use heat::HeatMap;
pub(crate) use numbers::full as number;
pub(crate) use plot::{Figure, Guide};
pub(crate) use ranking::{Bar, Ranking};
pub(crate) use series::Series;
pub(crate) use style::STYLE;
