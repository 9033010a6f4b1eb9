//! SVG as text, element by element. Knows nothing of figures.

use std::fmt::{Display, Write};

/// Where something is, in units of the drawing, from its top left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle by its top left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Which end of a text stands at its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in the making.
#[derive(Debug, Default)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// A text element of `class`, its baseline at `point`.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, point: Point, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.write(format_args!(
            r#"<text class="{class}" text-anchor="{anchor}" x="{}" y="{}">{}</text>"#,
            Short(point.x),
            Short(point.y),
            Escaped(text)
        ));
    }

    /// A straight line of `class`.
    pub(super) fn line(&mut self, class: &str, from: Point, to: Point) {
        self.write(format_args!(
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            Short(from.x),
            Short(from.y),
            Short(to.x),
            Short(to.y)
        ));
    }

    /// A line through all points.
    pub(super) fn polyline(&mut self, class: &str, points: &[Point]) {
        let points: Vec<String> =
            points.iter().map(|point| format!("{},{}", Short(point.x), Short(point.y))).collect();
        self.write(format_args!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" ")));
    }

    /// A rectangle of `class` that says `tip` when pointed at; an empty tip says nothing.
    pub(super) fn rectangle(&mut self, class: &str, area: Area, round: f64, tip: &str) {
        self.write(format_args!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" rx="{}""#,
            Short(area.x),
            Short(area.y),
            Short(area.width.max(0.0)),
            Short(area.height.max(0.0)),
            Short(round)
        ));
        self.close("rect", tip);
    }

    /// A rectangle filled as strongly as `strength` (0 to 1) says.
    pub(super) fn cell(&mut self, class: &str, area: Area, strength: f64, tip: &str) {
        self.write(format_args!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.3}""#,
            Short(area.x),
            Short(area.y),
            Short(area.width.max(0.0)),
            Short(area.height.max(0.0)),
            strength.clamp(0.0, 1.0)
        ));
        self.close("rect", tip);
    }

    /// A shape of `class` by its outline, likewise.
    pub(super) fn path(&mut self, class: &str, outline: &str, tip: &str) {
        self.write(format_args!(r#"<path class="{class}" d="{outline}""#));
        self.close("path", tip);
    }

    /// Begins a group of `class`.
    pub(super) fn begin(&mut self, class: &str) {
        self.write(format_args!(r#"<g class="{class}">"#));
    }

    /// Ends the group begun last.
    pub(super) fn end(&mut self) {
        self.text.push_str("</g>");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn close(&mut self, element: &str, tip: &str) {
        if tip.is_empty() {
            self.text.push_str("/>");
        } else {
            self.write(format_args!("><title>{}</title></{element}>", Escaped(tip)));
        }
    }

    fn write(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        _ = self.text.write_fmt(what);
    }
}

/// A coordinate with one digit after the point, which nobody can see beyond.
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // No `-0`, and nothing that is not a number: a viewer would refuse the whole drawing.
        write!(f, "{}", if tenths.is_finite() && tenths != 0.0 { tenths } else { 0.0 })
    }
}

/// Text that may stand between tags and in attributes; what XML cannot carry becomes a space.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char(' ')?,
                c if c.is_control() => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
