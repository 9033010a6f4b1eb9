//! Draws the series of a figure: their lines and points.

use super::frame::Frame;
use super::series::Series;
use super::style::series_class;
use super::svg::{Point, Short, Svg, at};

/// Draws all series.
pub(super) fn draw(svg: &mut Svg, frame: &Frame<'_>, all: &[Series]) {
    for (index, series) in all.iter().enumerate() {
        let colour = series.colour.unwrap_or(index);
        svg.begin(&series_class(colour));
        draw_line(svg, frame, series);
        draw_points(svg, frame, series, colour);
        svg.end();
    }
}

/// Draws one point of a series, in the shape that belongs to the colour.
pub(super) fn point(svg: &mut Svg, colour: usize, at: Point, tip: &str) {
    svg.path("fig-solid", &outline(colour, at), tip);
}

/// Draws the line of a series, with a gap where data is missing.
fn draw_line(svg: &mut Svg, frame: &Frame<'_>, series: &Series) {
    let places: Vec<Option<Point>> =
        series.points.iter().map(|&(x, y)| frame.place(x, y)).collect();
    for stretch in places.split(Option::is_none) {
        let stretch: Vec<Point> = stretch.iter().flatten().copied().collect();
        let stretch = if series.is_stepped { stepped(&stretch) } else { stretch };
        if stretch.len() > 1 {
            svg.polyline("fig-line", &stretch);
        }
    }
}

/// Returns the points of a stepped line through `points`: the line goes horizontally from each point to the
/// next x coordinate, then vertically to the next point.
fn stepped(points: &[Point]) -> Vec<Point> {
    let corners =
        points.windows(2).flat_map(|pair| [pair[0], Point { x: pair[1].x, y: pair[0].y }]);
    corners.chain(points.last().copied()).collect()
}

/// Draws the points of a series. A long series shows only a few points, so that the line can be recognized by
/// the shape in the legend. The other points are hidden until the reader points at them, because they would
/// cover the line.
fn draw_points(svg: &mut Svg, frame: &Frame<'_>, series: &Series, colour: usize) {
    let is_crowded = series.points.len() > MOST_POINTS;
    let every = if is_crowded { series.points.len() / SHOWN_POINTS } else { 1 };
    for (index, &(x, y)) in series.points.iter().enumerate() {
        let Some(place) = frame.place(x, y) else { continue };
        let tip = frame.tip(&series.name, x, y);
        if index % every == every / 2 {
            point(svg, colour, place, &tip);
        } else {
            svg.path("fig-touch", &circle(place, 5.0), &tip);
        }
    }
}

/// Returns the outline of a point as an SVG path: circle, square, triangle or diamond by the number of the colour, so
/// that series also differ without colour.
fn outline(colour: usize, Point { x, y }: Point) -> String {
    let p = |dx: f64, dy: f64| format!("{},{}", Short(x + dx), Short(y + dy));
    match colour % 4 {
        0 => circle(at(x, y), 3.6),
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
