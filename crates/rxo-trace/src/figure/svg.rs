//! Writes SVG, element by element. This module does not depend on figures.

use std::fmt::{Display, Write};

/// A position from the top left corner, in units of the drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle, given by its top left corner and its size.
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

/// The part of a text that lies at the point where the text is drawn: its start, middle or end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An unfinished SVG drawing.
#[derive(Debug, Default)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// Writes text of `class` with its baseline at `point`.
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

    /// Draws a straight line of `class`.
    pub(super) fn line(&mut self, class: &str, from: Point, to: Point) {
        self.write(format_args!(
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            Short(from.x),
            Short(from.y),
            Short(to.x),
            Short(to.y)
        ));
    }

    /// Draws a line of `class` through all points.
    pub(super) fn polyline(&mut self, class: &str, points: &[Point]) {
        let points: Vec<String> =
            points.iter().map(|point| format!("{},{}", Short(point.x), Short(point.y))).collect();
        self.write(format_args!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" ")));
    }

    /// Draws a rectangle of `class` with the tooltip `tip`, unless `tip` is empty.
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

    /// Draws a rectangle of `class` whose opacity is `strength` (0 to 1), and which has the tooltip `tip`.
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

    /// Draws a shape of `class` from its outline. The shape has the tooltip `tip`, unless `tip` is empty.
    pub(super) fn path(&mut self, class: &str, outline: &str, tip: &str) {
        self.write(format_args!(r#"<path class="{class}" d="{outline}""#));
        self.close("path", tip);
    }

    /// Begins a group of elements with the style class `class`.
    pub(super) fn begin(&mut self, class: &str) {
        self.write(format_args!(r#"<g class="{class}">"#));
    }

    /// Ends the group that was begun last.
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
        // Writing to a `String` cannot fail.
        _ = self.text.write_fmt(what);
    }
}

/// A coordinate, written with one decimal; finer differences are invisible.
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // Neither `-0` nor a non-number is written: a viewer would refuse the whole drawing.
        write!(f, "{}", if tenths.is_finite() && tenths != 0.0 { tenths } else { 0.0 })
    }
}

/// Text that is written with escapes for elements and attributes. Characters that XML cannot contain become spaces.
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
