//! Rankings: horizontal bars, one below the other, with their names. A ranking suits a few values with long
//! names.

use super::draw::{Canvas, Draw, EDGE, Naming, Size, document, text_width};
use super::style::series_class;
use super::svg::{Anchor, Area, Svg, at};

/// A ranking: values by name, in the order given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ranking {
    /// The title of the ranking, in a few words.
    pub(crate) title: String,
    /// A sentence that describes the ranking for readers who cannot see it.
    pub(crate) description: String,
    /// The bars of the ranking, from top to bottom.
    pub(crate) bars: Vec<Bar>,
}

/// A bar of a ranking: one value with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    /// The name of the value, which is written beside or above the bar.
    pub(crate) name: String,
    /// The value, which determines the bar's length. Negative and infinite values have no bar.
    pub(crate) value: f64,
    /// The value as text, which is written after the bar.
    pub(crate) text: String,
    /// The number of the bar's colour, 0 to 7.
    pub(crate) colour: usize,
}

impl Draw for Ranking {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, size: Size) -> String {
        let naming = Naming { title: &self.title, description: &self.description };
        let width = f64::from(size.width);
        let mut canvas = Canvas::default();
        let columns = Columns::fit(&self.bars, width);
        for bar in &self.bars {
            columns.draw(&mut canvas.svg, bar, canvas.top);
            canvas.top += columns.line;
        }
        document(canvas.svg, naming, (width, canvas.top + EDGE))
    }
}

/// The positions of names, bars and values in the drawing.
struct Columns {
    /// `true` if names are above their bars, because there is no space beside them.
    above: bool,
    line: f64,
    left: f64,
    most: f64,
    /// The largest value, whose bar has the full length.
    scale: f64,
}

impl Columns {
    fn fit(bars: &[Bar], width: f64) -> Self {
        let widest = |text: fn(&Bar) -> &str| {
            bars.iter().map(|bar| text_width(text(bar))).fold(0.0, f64::max)
        };
        let (names, values) = (widest(|bar| &bar.name), widest(|bar| &bar.text));
        let above = names > width * 0.4 || width < 480.0;
        let left = if above { EDGE } else { EDGE + names + 12.0 };
        let most = (width - left - values - 12.0 - EDGE).max(40.0);
        let line = if above { 42.0 } else { 28.0 };
        let scale = bars.iter().map(|bar| bar.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        Self { above, line, left, most, scale }
    }

    fn draw(&self, svg: &mut Svg, bar: &Bar, top: f64) {
        let share = if self.scale > 0.0 { (bar.value / self.scale).clamp(0.0, 1.0) } else { 0.0 };
        let share = if share.is_nan() { 0.0 } else { share };
        let y = if self.above { top + 18.0 } else { top + 4.0 };
        let name = if self.above { at(EDGE, top + 12.0) } else { at(self.left - 12.0, y + 14.0) };
        let anchor = if self.above { Anchor::Start } else { Anchor::End };
        svg.text("fig-label", anchor, name, &bar.name);
        let track = Area { x: self.left, y, width: self.most, height: 18.0 };
        svg.rectangle("fig-track", track, 3.0, "");
        svg.begin(&series_class(bar.colour));
        let filled = Area { width: (share * self.most).max(1.5), ..track };
        svg.rectangle("fig-solid", filled, 3.0, &format!("{}: {}", bar.name, bar.text));
        svg.end();
        svg.text("fig-value", Anchor::Start, at(track.right() + 10.0, y + 14.0), &bar.text);
    }
}
