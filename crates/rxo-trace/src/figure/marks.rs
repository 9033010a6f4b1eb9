//! Draws the marks of series: lines with their points, bars and stacks, with their ranges, crosses for invalid
//! points, and brackets.

use super::frame::Frame;
use super::numbers::full;
use super::plot::Bracket;
use super::series::{Mark, Series};
use super::style::series_class;
use super::svg::{Anchor, Area, Point, Short, Svg, at};

/// Draws all series and the brackets: bars first, so that lines are drawn over them.
pub(super) fn draw(svg: &mut Svg, frame: &Frame<'_>, all: &[Series], brackets: &[Bracket]) {
    let stacks = Stacks::of(frame, brackets);
    for (index, series) in all.iter().enumerate() {
        svg.begin(&series_class(series.colour.unwrap_or(index)));
        match series.mark {
            Mark::Bar => draw_bars(svg, frame, all, index),
            Mark::Stack => draw_stack(svg, frame, stacks, (all, index)),
            Mark::Line | Mark::Step | Mark::Box => {}
        }
        svg.end();
    }
    for (index, series) in all.iter().enumerate() {
        if matches!(series.mark, Mark::Bar | Mark::Stack) {
            continue;
        }
        let colour = series.colour.unwrap_or(index);
        let beside = beside(frame, all, index);
        svg.begin(&series_class(colour));
        if is_line(series) {
            draw_line(svg, frame, series, beside);
        }
        if series.mark == Mark::Box {
            draw_boxes(svg, frame, series, beside);
        } else {
            draw_points(svg, frame, series, colour, beside);
        }
        svg.end();
    }
    draw_brackets(svg, frame, stacks, brackets);
}

/// Draws brackets beside stacks, each with name and size on two lines of text, which stay above the axis.
fn draw_brackets(svg: &mut Svg, frame: &Frame<'_>, stacks: Stacks, all: &[Bracket]) {
    for Bracket { x, from, to, name } in all {
        let Some((low, high)) = frame.place(*x, *from).zip(frame.place(*x, *to)) else { continue };
        let left = stacks.left(low.x) + stacks.width + 6.0;
        let outline = format!("M{},{}h6V{}h-6", Short(left), Short(low.y), Short(high.y));
        svg.path("fig-bracket", &outline, "");
        let middle = f64::midpoint(low.y, high.y).min(low.y - 16.0);
        svg.text("fig-label", Anchor::Start, at(left + 11.0, middle - 3.0), name);
        svg.text("fig-label", Anchor::Start, at(left + 11.0, middle + 11.0), &full(to - from));
    }
}

/// Returns the style class of a line of this series.
pub(super) fn line_class(series: &Series) -> String {
    if series.is_reference { "fig-line fig-dashed".to_owned() } else { "fig-line".to_owned() }
}

/// Returns the style class of a bar of this series.
pub(super) const fn bar_class(series: &Series) -> &'static str {
    if series.is_reference { "fig-bar-hollow" } else { "fig-solid" }
}

/// Draws one point of a series, in the shape that goes with its colour.
pub(super) fn point(svg: &mut Svg, series: &Series, colour: usize, at: Point, tip: &str) {
    let class = if series.is_reference { "fig-hollow" } else { "fig-solid" };
    svg.path(class, &outline(colour, at), tip);
}

/// Draws a cross for an invalid point.
pub(super) fn cross(svg: &mut Svg, Point { x, y }: Point, tip: &str) {
    let p = |dx: f64, dy: f64| format!("{},{}", Short(x + dx), Short(y + dy));
    let outline = format!("M{}L{}M{}L{}", p(-4.0, -4.0), p(4.0, 4.0), p(4.0, -4.0), p(-4.0, 4.0));
    svg.path("fig-cross", &outline, tip);
}

fn is_line(series: &Series) -> bool {
    matches!(series.mark, Mark::Line | Mark::Step)
}

/// Returns the horizontal offset in pixels of the series at `index`, so that the ranges of several series do not cover
/// each other.
fn beside(frame: &Frame<'_>, all: &[Series], index: usize) -> f64 {
    let moves = |series: &Series| !series.ranges.is_empty() || series.has_invalid();
    if !frame.has_slots() || !moves(&all[index]) {
        return 0.0;
    }
    let count = all.iter().filter(|series| moves(series)).count();
    let place = all[..index].iter().filter(|series| moves(series)).count();
    let is_box = all.iter().any(|series| series.mark == Mark::Box);
    let farthest = if is_box { BOXES_BESIDE } else { FARTHEST_BESIDE };
    let step = (frame.slot_width() * 0.6 / count.max(1) as f64).min(farthest);
    (place as f64 - (count as f64 - 1.0) / 2.0) * step
}

/// Draws the line of a series, with a gap where data is missing and where a point is invalid.
fn draw_line(svg: &mut Svg, frame: &Frame<'_>, series: &Series, beside: f64) {
    let place = |(index, &(x, y)): (usize, &(f64, f64))| {
        let place = frame.place(x, y).filter(|_| !series.is_invalid(index))?;
        Some(at(place.x + beside, place.y))
    };
    let places: Vec<Option<Point>> = series.points.iter().enumerate().map(place).collect();
    for stretch in places.split(Option::is_none) {
        let stretch: Vec<Point> = stretch.iter().flatten().copied().collect();
        let stretch = if series.mark == Mark::Step { stepped(&stretch) } else { stretch };
        if stretch.len() > 1 {
            svg.polyline(&line_class(series), &stretch);
        }
    }
}

/// Returns the points of a line that goes in steps: horizontally from each point to the next x, then vertically.
fn stepped(points: &[Point]) -> Vec<Point> {
    let corners =
        points.windows(2).flat_map(|pair| [pair[0], Point { x: pair[1].x, y: pair[0].y }]);
    corners.chain(points.last().copied()).collect()
}

/// Draws the points of a series with their ranges. A long series shows only a few of them, so that the line has the
/// shape that the legend shows; the other points appear when pointed at, because they would hide the line.
fn draw_points(svg: &mut Svg, frame: &Frame<'_>, series: &Series, colour: usize, beside: f64) {
    let crowded = is_line(series) && series.points.len() > MOST_POINTS;
    let every = if crowded { series.points.len() / SHOWN_POINTS } else { 1 };
    for (index, &(x, y)) in series.points.iter().enumerate() {
        let Some(place) = frame.place(x, y) else { continue };
        let place = at(place.x + beside, place.y);
        let tip = frame.tip(&series.name, x, y);
        if series.is_invalid(index) {
            draw_invalid(svg, frame, place, &tip);
            continue;
        }
        draw_range(svg, frame, series, index, (place.x, "fig-range"));
        if index % every == every / 2 {
            point(svg, series, colour, place, &tip);
        } else {
            svg.path("fig-touch", &circle(place, 5.0), &tip);
        }
    }
}

/// Draws the boxplots of a series: the range, the box over it, and the median across the box.
fn draw_boxes(svg: &mut Svg, frame: &Frame<'_>, series: &Series, beside: f64) {
    for (index, &(x, y)) in series.points.iter().enumerate() {
        let Some(place) = frame.place(x, y) else { continue };
        let place = at(place.x + beside, place.y);
        draw_range(svg, frame, series, index, (place.x, "fig-range"));
        let (low, high) = series.quartiles.get(index).copied().flatten().unwrap_or((y, y));
        let Some((low, high)) = frame.place(x, low).zip(frame.place(x, high)) else { continue };
        // Even a box of one value is large enough to point at.
        let height = (low.y - high.y).max(3.0);
        let y = f64::midpoint(low.y, high.y) - height / 2.0;
        let area = Area { x: place.x - BOX / 2.0, y, width: BOX, height };
        svg.rectangle("fig-box", area, 1.0, &frame.tip(&series.name, x, series.points[index].1));
        let left = place.x - BOX / 2.0;
        svg.line("fig-line", at(left, place.y), at(left + BOX, place.y));
    }
}

/// Draws the cross of an invalid point. If the point is beyond the upper end of the axis, the cross stands at the end,
/// below an arrow.
fn draw_invalid(svg: &mut Svg, frame: &Frame<'_>, place: Point, tip: &str) {
    let tip = format!("{tip} (invalid)");
    let top = frame.top();
    if place.y >= top {
        return cross(svg, place, &tip);
    }
    let (x, y) = (Short(place.x), Short(top - 4.0));
    svg.path("fig-cross", &format!("M{x},{y}m-4,5l4,-5l4,5"), "");
    cross(svg, at(place.x, top + 11.0), &tip);
}

/// Draws the range of the point at this x position, unless the point has no range or the range is a single
/// value.
fn draw_range(
    svg: &mut Svg,
    frame: &Frame<'_>,
    series: &Series,
    index: usize,
    (x, class): (f64, &str),
) {
    let Some((low, high)) = series.range(index).filter(|(low, high)| high > low) else { return };
    let at_x = series.points[index].0;
    let Some((low, high)) = frame.place(at_x, low).zip(frame.place(at_x, high)) else { return };
    let (left, low, high) = (Short(x - 3.0), Short(low.y), Short(high.y));
    svg.path(class, &format!("M{left},{low}h6m-3,0V{high}m-3,0h6"), "");
}

/// Draws the bars of the series at `index`. Bars of several series stand side by side; a series without a value takes
/// no space.
fn draw_bars(svg: &mut Svg, frame: &Frame<'_>, all: &[Series], index: usize) {
    let series = &all[index];
    let stands = |series: &Series, place: usize| {
        series.mark == Mark::Bar
            && series.points.get(place).is_some_and(|point| point.1.is_finite())
    };
    let count = |all: &[Series], place| all.iter().filter(|series| stands(series, place)).count();
    let most = (0..series.points.len()).map(|place| count(all, place)).max();
    let slot = frame.slot_width() * 0.76;
    let width = (slot / most.unwrap_or(1).max(1) as f64).min(WIDEST_BAR);
    let gap = if width > 8.0 { 2.0 } else { 0.0 };
    let ground = frame.ground();
    for (place, &(x, y)) in series.points.iter().enumerate() {
        let Some(top) = frame.place(x, y) else { continue };
        let (before, bars) = (count(&all[..index], place), count(all, place));
        let left = top.x - width * bars as f64 / 2.0 + width * before as f64;
        // Even a bar of value zero is large enough to point at.
        let height = (ground - top.y).abs().max(0.8);
        let area =
            Area { x: left + gap / 2.0, y: top.y.min(ground - 0.8), width: width - gap, height };
        svg.rectangle(bar_class(series), area, 2.0, &frame.tip(&series.name, x, y));
        draw_range(svg, frame, series, place, (left + width / 2.0, "fig-range-bar"));
    }
}

/// Draws the parts of stacks that belong to the series at `index`.
fn draw_stack(svg: &mut Svg, frame: &Frame<'_>, stacks: Stacks, (all, index): (&[Series], usize)) {
    let series = &all[index];
    for (place, &(x, y)) in series.points.iter().enumerate() {
        let below = all[..index].iter().filter(|series| series.mark == Mark::Stack);
        let below = below.filter_map(|series| series.points.get(place).map(|point| point.1));
        let from: f64 = below.filter(|value| value.is_finite()).sum();
        let Some((low, high)) = frame.place(x, from).zip(frame.place(x, from + y)) else {
            continue;
        };
        let (left, width) = (stacks.left(low.x), stacks.width);
        let area = Area { x: left, y: high.y, width, height: low.y - high.y };
        svg.rectangle(bar_class(series), area, 0.0, &frame.tip(&series.name, x, y));
    }
}

/// The positions of stacks in the drawing.
#[derive(Clone, Copy)]
struct Stacks {
    width: f64,
    /// The distance in pixels by which stacks are moved to the left, because brackets need space beside them.
    shift: f64,
}

impl Stacks {
    fn of(frame: &Frame<'_>, brackets: &[Bracket]) -> Self {
        let slot = frame.slot_width();
        let shift = if brackets.is_empty() { 0.0 } else { slot * 0.18 };
        Self { width: (slot * 0.4).min(WIDEST_STACK), shift }
    }

    fn left(self, place: f64) -> f64 {
        place - self.shift - self.width / 2.0
    }
}

/// Returns the outline of a point as an SVG path: circle, square, triangle or diamond by the number of the colour, so
/// that series also differ without colour.
fn outline(colour: usize, Point { x, y }: Point) -> String {
    let p = |dx: f64, dy: f64| format!("{},{}", Short(x + dx), Short(y + dy));
    match colour % 4 {
        0 => circle(Point { x, y }, 3.6),
        1 => {
            format!("M{}H{}V{}H{}Z", p(-3.3, -3.3), Short(x + 3.3), Short(y + 3.3), Short(x - 3.3))
        }
        2 => format!("M{}L{}L{}Z", p(0.0, -4.4), p(4.2, 3.2), p(-4.2, 3.2)),
        _ => format!("M{}L{}L{}L{}Z", p(0.0, -4.8), p(4.8, 0.0), p(0.0, 4.8), p(-4.8, 0.0)),
    }
}

fn circle(Point { x, y }: Point, radius: f64) -> String {
    let (left, twice) = (Short(x - radius), Short(2.0 * radius));
    let back = Short(-2.0 * radius);
    format!(
        "M{left},{}a{radius},{radius} 0 1,0 {twice},0a{radius},{radius} 0 1,0 {back},0Z",
        Short(y)
    )
}

const MOST_POINTS: usize = 20;
/// The number of points of a long series that are shown.
const SHOWN_POINTS: usize = 6;
const WIDEST_BAR: f64 = 56.0;
const WIDEST_STACK: f64 = 84.0;
const FARTHEST_BESIDE: f64 = 11.0;
/// The width of a box in pixels. Boxes beside each other have space between them.
const BOX: f64 = 16.0;
const BOXES_BESIDE: f64 = 22.0;
