//! Figures: lines, bars and heat maps as SVG.
//!
//! A figure is data ([`Figure`], [`Ranking`], [`HeatMap`]), and [`Draw::to_svg`] draws it. Colours are style
//! classes, so a figure follows the reader's light or dark scheme. Every mark shows its value when pointed
//! at, every figure has a title and a description for readers who cannot see it, and series differ in shape
//! as well as in colour. Equal data gives equal bytes.
//!
//! The SVG writer is our own, because `plotters` writes colours into every element, so that a
//! figure cannot follow the reader's scheme, and supports neither titles nor descriptions.
//!
//! # Examples
//! ```
//! use rxo_trace::figure::{Axis, Draw, Figure, Series};
//!
//! let payloads = ["2 KB", "4 KB", "8 KB"];
//! let figure = Figure::new(
//!     "Packets eliminated of 10,000",
//!     Axis::categories("application payload", payloads),
//!     Axis::linear("packets eliminated"),
//! )
//! .with(Series::bars("measured here", [4_800.0, 6_400.0, 7_900.0]).colour(0))
//! .with(Series::bars("paper", [5_000.0, 6_600.0, 8_000.0]).colour(0).reference());
//! assert!(figure.to_svg().starts_with("<svg "));
//! ```

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

pub use axis::{Axis, Scale};
pub use draw::{Draw, Place, Size};
pub use heat::HeatMap;
pub use numbers::full as number;
pub use plot::{Bracket, Figure, Guide};
pub use ranking::{Bar, Ranking};
pub use series::{Mark, Series};
pub use style::STYLE;
