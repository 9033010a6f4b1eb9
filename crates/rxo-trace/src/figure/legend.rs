//! The legend: a row of samples above the plot, broken into lines as needed.

use super::draw::{Canvas, EDGE, text_width};
use super::marks;
use super::series::Series;
use super::style::series_class;
use super::svg::{Anchor, Svg, at};

/// An entry of the legend: a sample of a mark, with its name.
pub(super) enum Entry<'a> {
    Series {
        series: &'a Series,
        colour: usize,
    },
    /// A horizontal guide, with its name.
    Guide(String),
}

impl Entry<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Series { series, .. } => &series.name,
            Self::Guide(name) => name,
        }
    }
}

/// Draws the entries of the legend in lines of at most `width`, and moves the top of the canvas below these
/// lines.
pub(super) fn draw(canvas: &mut Canvas, entries: &[Entry<'_>], width: f64) {
    let mut x = EDGE;
    for (index, entry) in entries.iter().enumerate() {
        let needed = SAMPLE + text_width(entry.name()) + GAP;
        if index > 0 && x + needed - GAP > EDGE + width {
            x = EDGE;
            canvas.top += LINE;
        }
        draw_entry(&mut canvas.svg, entry, x, canvas.top + 8.0);
        x += needed;
    }
    if !entries.is_empty() {
        canvas.top += LINE + 4.0;
    }
}

fn draw_entry(svg: &mut Svg, entry: &Entry<'_>, x: f64, y: f64) {
    match entry {
        Entry::Series { colour, .. } => {
            svg.begin(&series_class(*colour));
            svg.line("fig-line", at(x, y), at(x + 22.0, y));
            marks::point(svg, *colour, at(x + 11.0, y), "");
            svg.end();
        }
        Entry::Guide(_) => svg.line("fig-guide", at(x, y), at(x + 22.0, y)),
    }
    svg.text("fig-label", Anchor::Start, at(x + SAMPLE, y + 4.0), entry.name());
}

/// The distance from an entry's left edge to its name, in pixels.
const SAMPLE: f64 = 28.0;
const GAP: f64 = 18.0;
const LINE: f64 = 20.0;
