//! The marks of series: lines with their points, dots, bars.

use super::frame::Frame;
use super::series::{Mark, Series};
use super::style::series_class;
use super::svg::{Area, Point, Short, Svg};

/// Draws all series: bars first, so that lines are drawn over them.
pub(super) fn draw(svg: &mut Svg, frame: &Frame<'_>, all: &[Series]) {
    let bars = all.iter().filter(|series| series.mark == Mark::Bar).count();
    let order =
        |is_bar| all.iter().enumerate().filter(move |(_, s)| (s.mark == Mark::Bar) == is_bar);
    for (place, (index, series)) in order(true).enumerate() {
        svg.begin(&series_class(series.colour.unwrap_or(index)));
        draw_bars(svg, frame, series, (place, bars));
        svg.end();
    }
    for (index, series) in order(false) {
        let colour = series.colour.unwrap_or(index);
        svg.begin(&series_class(colour));
        if is_line(series) {
            draw_line(svg, frame, series);
        }
        draw_points(svg, frame, series, colour);
        svg.end();
    }
}

/// The class of a line of this series.
pub(super) fn line_class(series: &Series) -> String {
    if series.is_reference { "fig-line fig-dashed".to_owned() } else { "fig-line".to_owned() }
}

/// The class of a bar of this series.
pub(super) const fn bar_class(series: &Series) -> &'static str {
    if series.is_reference { "fig-bar-hollow" } else { "fig-solid" }
}

/// One point of a series, in the shape that goes with its colour.
pub(super) fn point(svg: &mut Svg, series: &Series, colour: usize, at: Point, tip: &str) {
    let class = if series.is_reference { "fig-hollow" } else { "fig-solid" };
    svg.path(class, &outline(colour, at), tip);
}

fn is_line(series: &Series) -> bool {
    matches!(series.mark, Mark::Line | Mark::Step)
}

/// Draws a line. A gap in the data is a gap in the line.
fn draw_line(svg: &mut Svg, frame: &Frame<'_>, series: &Series) {
    let places: Vec<Option<Point>> =
        series.points.iter().map(|&(x, y)| frame.place(x, y)).collect();
    for stretch in places.split(Option::is_none) {
        let stretch: Vec<Point> = stretch.iter().flatten().copied().collect();
        let stretch = if series.mark == Mark::Step { stepped(&stretch) } else { stretch };
        if stretch.len() > 1 {
            svg.polyline(&line_class(series), &stretch);
        }
    }
}

/// Turns a line into steps: horizontal from each point to the next x, then vertical.
fn stepped(points: &[Point]) -> Vec<Point> {
    let corners =
        points.windows(2).flat_map(|pair| [pair[0], Point { x: pair[1].x, y: pair[0].y }]);
    corners.chain(points.last().copied()).collect()
}

/// Draws the points. A long series shows them only when pointed at, because they would hide the
/// line.
fn draw_points(svg: &mut Svg, frame: &Frame<'_>, series: &Series, colour: usize) {
    let crowded = is_line(series) && series.points.len() > MOST_POINTS;
    for &(x, y) in &series.points {
        let Some(place) = frame.place(x, y) else { continue };
        let tip = frame.tip(&series.name, x, y);
        if crowded {
            svg.path("fig-touch", &circle(place, 5.0), &tip);
        } else {
            point(svg, series, colour, place, &tip);
        }
    }
}

fn draw_bars(svg: &mut Svg, frame: &Frame<'_>, series: &Series, (place, bars): (usize, usize)) {
    let slot = frame.slot_width() * 0.76;
    let width = (slot / bars.max(1) as f64).min(WIDEST_BAR);
    let gap = if width > 8.0 { 2.0 } else { 0.0 };
    let ground = frame.ground();
    for &(x, y) in &series.points {
        let Some(top) = frame.place(x, y) else { continue };
        let left = top.x - width * bars as f64 / 2.0 + width * place as f64;
        // Even a bar of value zero must be large enough to point at.
        let height = (ground - top.y).abs().max(0.8);
        let area =
            Area { x: left + gap / 2.0, y: top.y.min(ground - 0.8), width: width - gap, height };
        svg.rectangle(bar_class(series), area, 2.0, &frame.tip(&series.name, x, y));
    }
}

/// Circle, square, triangle, diamond, and again, so that series differ without colour too.
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
const WIDEST_BAR: f64 = 56.0;
