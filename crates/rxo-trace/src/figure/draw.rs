//! The parts that all figures share: their size, and the document around the drawing.

use std::fmt::Write;

use super::style::STYLE;
use super::svg::{Anchor, Area, Escaped, Svg, at};

/// A figure that can be drawn.
pub trait Draw {
    /// Returns the figure's title, in a few words.
    fn title(&self) -> &str;

    /// Returns the figure in `size` as SVG, for a file of its own or for a page. Equal data gives equal
    /// bytes.
    fn draw(&self, size: Size, place: Place) -> String;

    /// Returns the figure as an SVG file of its own.
    #[must_use]
    fn to_svg(&self) -> String {
        self.draw(Size::WIDE, Place::Alone)
    }

    /// Returns the figure as SVG for a page that has [`STYLE`] and shows the title itself.
    #[must_use]
    fn to_inline_svg(&self, size: Size) -> String {
        self.draw(size, Place::InPage)
    }
}

/// The size of a drawing in pixels, at its natural scale. The drawing is scaled to the available width; its
/// text is readable only if the available width is not much smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The width of the drawing, in pixels.
    pub width: u32,
    /// The height of the drawing, in pixels. Rankings and heat maps ignore it and choose a height themselves.
    pub height: u32,
}

impl Size {
    /// The size of a figure on a desktop page.
    pub const WIDE: Self = Self { width: 760, height: 380 };
    /// The size of a figure on a phone.
    pub const NARROW: Self = Self { width: 360, height: 320 };
}

/// The surroundings into which a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The figure is in a file of its own, with style, background and visible title.
    Alone,
    /// The figure is in a page that has [`STYLE`] and shows the title itself.
    InPage,
}

/// The title and the description of a figure. The description is for readers who cannot see the figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    pub(super) title: &'a str,
    pub(super) description: &'a str,
}

/// An unfinished drawing, and the y coordinate of its current lower end.
pub(super) struct Canvas {
    pub(super) svg: Svg,
    pub(super) top: f64,
}

impl Canvas {
    /// Begins a drawing of this width. If it stands alone, writes the title in as many lines as the width needs.
    pub(super) fn begin(naming: Naming<'_>, place: Place, width: f64) -> Self {
        let (mut svg, mut top) = (Svg::default(), EDGE);
        if place == Place::Alone {
            // The title's type is larger and bolder than other text, so fewer characters fit.
            for line in lines(naming.title, (width - 2.0 * EDGE) / 1.35) {
                svg.text("fig-title", Anchor::Start, at(EDGE, top + 16.0), &line);
                top += 20.0;
            }
            top += 10.0;
        }
        Self { svg, top }
    }
}

/// Returns a complete SVG document with a drawing of this size.
pub(super) fn document(svg: Svg, naming: Naming<'_>, size: (f64, f64), place: Place) -> String {
    let (width, height) = (size.0.ceil(), size.1.ceil());
    let mut text = String::new();
    let namespace =
        if place == Place::Alone { r#"xmlns="http://www.w3.org/2000/svg" "# } else { "" };
    // Writing to a `String` cannot fail.
    _ = write!(
        text,
        r#"<svg {namespace}class="fig" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{}</title>"#,
        Escaped(naming.title)
    );
    if !naming.description.is_empty() {
        _ = write!(text, "<desc>{}</desc>", Escaped(naming.description));
    }
    if place == Place::Alone {
        _ = write!(text, "<style>{STYLE}</style>");
        let mut ground = Svg::default();
        ground.rectangle("fig-ground", Area { x: 0.0, y: 0.0, width, height }, 0.0, "");
        text += &ground.into_text();
    }
    text + &svg.into_text() + "</svg>"
}

/// Returns `text`, broken between words into lines of at most `width`; a longer word gets its own line.
fn lines(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if text_width(line) + text_width(word) + 4.0 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns an upper bound for the width of `text` in pixels, for all typefaces of the figures.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 4.0,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 5.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.5,
        // Characters of Chinese, Japanese and Korean are as wide as high.
        c if c >= '\u{2e80}' => 12.5,
        _ => 7.7,
    }
}

/// The margin at the edges of a drawing, in pixels.
pub(super) const EDGE: f64 = 8.0;
