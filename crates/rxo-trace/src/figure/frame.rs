//! The frame of a plot, which maps values to positions and draws axes and labels.

use super::axis::{Axis, Scale};
use super::draw::{EDGE, text_width};
use super::numbers::{self, full, percent};
use super::plot::{Figure, Guide};
use super::svg::{Anchor, Area, Point, Svg, at};
use super::ticks;

/// The plot area of a figure with its two axes, which maps values to positions.
pub(super) struct Frame<'a> {
    area: Area,
    x: Ruler<'a>,
    y: Ruler<'a>,
}

/// An axis with its final range and ticks.
struct Ruler<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    /// The labels of the ticks.
    names: Vec<String>,
}

impl<'a> Frame<'a> {
    /// Returns the frame of `figure` in a drawing of this size, below the y coordinate `top`.
    pub(super) fn fit(figure: &'a Figure, top: f64, (width, height): (f64, f64)) -> Self {
        // The plot begins below the name of the y axis, and below the names of vertical guides if there are some.
        let names = figure.guides.iter().any(|guide| matches!(guide, Guide::X(..)));
        let top = top + if names { 22.0 + GUIDE_LINE } else { 22.0 };
        let bottom = height - 46.0;
        let levels = (((bottom - top) / 52.0) as usize).clamp(2, 8);
        let y = Ruler::of(&figure.y, figure, |point| point.1, levels);
        let widest = y.names.iter().map(|name| text_width(name)).fold(18.0, f64::max);
        let left = EDGE + widest + 8.0;
        let area = Area { x: left, y: top, width: width - left - 16.0, height: bottom - top };
        let x = Ruler::of(&figure.x, figure, |point| point.0, (area.width / 64.0) as usize);
        Self { area, x, y }
    }

    /// Returns the position of the point (x, y) in the drawing; `None` if the axes cannot show it, such as 0 on a
    /// logarithmic axis.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<Point> {
        let (along, up) = (self.x.share(x)?, self.y.share(y)?);
        Some(at(self.area.x + along * self.area.width, self.area.bottom() - up * self.area.height))
    }

    /// Returns the tooltip for the mark of a point.
    pub(super) fn tip(&self, series: &str, x: f64, y: f64) -> String {
        let y = if self.y.axis.is_share { percent(y) } else { full(y) };
        let x = match &self.x.axis.scale {
            Scale::Categories(_) => category(self.x.axis, x),
            Scale::Linear | Scale::Logarithmic => full(x),
        };
        format!("{series}, {} {x}: {y}", self.x.axis.label)
    }

    /// Draws the axes, grid lines and labels of the figure.
    pub(super) fn draw(&self, svg: &mut Svg, figure: &Figure) {
        let names = figure.guides.iter().any(|guide| matches!(guide, Guide::X(..)));
        let above = if names { 12.0 + GUIDE_LINE } else { 12.0 };
        let left = at(EDGE, self.area.y - above);
        svg.text("fig-tick", Anchor::Start, left, &self.y.axis.label);
        self.draw_levels(svg);
        self.draw_names(svg);
        let middle = at(self.area.x + self.area.width / 2.0, self.area.bottom() + 38.0);
        svg.text("fig-tick", Anchor::Middle, middle, &self.x.axis.label);
        if figure.series.iter().all(|series| series.points.is_empty()) {
            let middle = at(middle.x, self.area.y + self.area.height / 2.0);
            svg.text("fig-tick", Anchor::Middle, middle, "nothing to show");
        }
    }

    /// Draws guides across the plot over everything else, and the names of vertical guides above the plot.
    pub(super) fn draw_guides(&self, svg: &mut Svg, guides: &[Guide]) {
        guides.iter().for_each(|guide| self.draw_guide(svg, guide));
    }

    fn draw_levels(&self, svg: &mut Svg) {
        for (&tick, name) in self.y.ticks.iter().zip(&self.y.names) {
            let Some(share) = self.y.share(tick) else { continue };
            let y = self.area.bottom() - share * self.area.height;
            svg.line("fig-grid", at(self.area.x, y), at(self.area.right(), y));
            svg.text("fig-tick", Anchor::End, at(self.area.x - 8.0, y + 4.0), name);
        }
        let zero = self.y.share(0.0).unwrap_or(0.0);
        let ground = self.area.bottom() - zero * self.area.height;
        svg.line("fig-axis", at(self.area.x, ground), at(self.area.right(), ground));
    }

    /// Marks every labelled value on the axis, and writes its label unless the label would touch the previous
    /// one.
    fn draw_names(&self, svg: &mut Svg) {
        let mut taken = f64::NEG_INFINITY;
        for (&tick, name) in self.x.ticks.iter().zip(&self.x.names) {
            let Some(share) = self.x.share(tick) else { continue };
            let x = self.area.x + share * self.area.width;
            let half = text_width(name) / 2.0;
            let bottom = self.area.bottom();
            svg.line("fig-axis", at(x, bottom), at(x, bottom + 4.0));
            if x - half < taken + 6.0 {
                continue;
            }
            taken = x + half;
            svg.text("fig-tick", Anchor::Middle, at(x, bottom + 18.0), name);
        }
    }

    fn draw_guide(&self, svg: &mut Svg, guide: &Guide) {
        match guide {
            Guide::X(value, name) => {
                let Some(share) = self.x.share(*value).filter(|share| is_inside(*share)) else {
                    return;
                };
                let x = self.area.x + share * self.area.width;
                let bottom = self.area.bottom();
                svg.line("fig-guide", at(x, self.area.y), at(x, bottom));
                svg.line("fig-axis", at(x, bottom), at(x, bottom + 6.0));
                let (anchor, gap) = beside(share);
                svg.text("fig-label", anchor, at(x + gap, self.area.y - 6.0), name);
            }
            // The name of a horizontal guide is in the legend.
            Guide::Y(value, _) => {
                let Some(share) = self.y.share(*value).filter(|share| is_inside(*share)) else {
                    return;
                };
                let y = self.area.bottom() - share * self.area.height;
                svg.line("fig-guide", at(self.area.x, y), at(self.area.right(), y));
                svg.line("fig-axis", at(self.area.x - 6.0, y), at(self.area.x, y));
            }
        }
    }
}

fn is_inside(share: f64) -> bool {
    (-1e-9..=1.0 + 1e-9).contains(&share)
}

/// Returns the side of a guide that has space for its name, and the offset of the name in pixels.
fn beside(share: f64) -> (Anchor, f64) {
    if share > 0.6 { (Anchor::End, 3.0) } else { (Anchor::Start, -3.0) }
}

/// The height of the names of vertical guides, in pixels.
const GUIDE_LINE: f64 = 16.0;

impl<'a> Ruler<'a> {
    fn of(axis: &'a Axis, figure: &Figure, value: fn(&(f64, f64)) -> f64, wanted: usize) -> Self {
        let is_y = std::ptr::eq(axis, &figure.y);
        let points = figure.series.iter().flat_map(|series| &series.points).map(value);
        let (low, high) = axis.range.unwrap_or_else(|| match &axis.scale {
            Scale::Categories(names) => (-0.5, names.len() as f64 - 0.5),
            Scale::Logarithmic => extent(points.filter(|&value| value > 0.0), (1.0, 10.0)),
            Scale::Linear => linear_range(extent(points, (0.0, 1.0)), is_y, wanted),
        });
        let (low, high) = if high > low { (low, high) } else { widened(axis, low) };
        let ticks = axis.ticks.clone().unwrap_or_else(|| match &axis.scale {
            Scale::Categories(names) => (0..names.len()).map(|place| place as f64).collect(),
            Scale::Logarithmic => ticks::logarithmic(low, high),
            Scale::Linear if axis.is_whole => {
                ticks::linear(low, high, wanted.min((high - low) as usize))
            }
            Scale::Linear => ticks::linear(low, high, wanted),
        });
        let names = names(axis, &ticks);
        Self { axis, low, high, ticks, names }
    }

    /// Returns the position of a value on the axis, from 0 (lower end) to 1; `None` if the axis cannot show it.
    fn share(&self, value: f64) -> Option<f64> {
        let share = match self.axis.scale {
            Scale::Logarithmic if value <= 0.0 => return None,
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear | Scale::Categories(_) => (value - self.low) / (self.high - self.low),
        };
        // A position far outside the frame would only enlarge the drawing, so it is clamped.
        share.is_finite().then(|| share.clamp(-0.02, 1.02))
    }
}

/// Returns the labels of the ticks of an axis.
fn names(axis: &Axis, ticks: &[f64]) -> Vec<String> {
    match &axis.scale {
        Scale::Categories(_) => ticks.iter().map(|&place| category(axis, place)).collect(),
        scale if axis.is_share => {
            let percents: Vec<f64> = ticks.iter().map(|tick| 100.0 * tick).collect();
            let names = numbers::ticks(&percents, *scale == Scale::Logarithmic);
            names.into_iter().map(|name| format!("{name} %")).collect()
        }
        scale => numbers::ticks(ticks, *scale == Scale::Logarithmic),
    }
}

/// Returns the name at index `place` of an axis of categories; empty if there is no such index.
fn category(axis: &Axis, place: f64) -> String {
    match &axis.scale {
        Scale::Categories(names) => names.get(place.max(0.0) as usize).cloned().unwrap_or_default(),
        Scale::Linear | Scale::Logarithmic => String::new(),
    }
}

/// Returns the smallest and the largest of all finite values; `otherwise` if no value is finite.
fn extent(values: impl Iterator<Item = f64>, otherwise: (f64, f64)) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { otherwise }
}

/// Returns the range of a linear axis. A y axis begins at 0, unless there are negative values, and ends at a
/// round value.
fn linear_range((low, high): (f64, f64), is_y: bool, wanted: usize) -> (f64, f64) {
    if !is_y {
        return (low, high);
    }
    let low = low.min(0.0);
    let high = high.max(0.0);
    let low = if low < 0.0 { -ticks::round_end(0.0, -low, wanted) } else { low };
    if high > low { (low, ticks::round_end(low, high, wanted)) } else { (low, low + 1.0) }
}

/// Returns a range around `value`, for an axis on which all data have this value.
fn widened(axis: &Axis, value: f64) -> (f64, f64) {
    match axis.scale {
        Scale::Logarithmic => (value / 2.0, value * 2.0),
        Scale::Linear | Scale::Categories(_) => (value - 0.5, value + 0.5),
    }
}
