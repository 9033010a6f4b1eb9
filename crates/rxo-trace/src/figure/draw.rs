//! The parts that all figures share: the size of the drawing, and the document around it.

use super::svg::{Escaped, Svg};

/// A figure that can be drawn.
pub(crate) trait Draw {
    /// Returns the figure's title, in a few words.
    fn title(&self) -> &str;

    /// Returns the figure in `size` as SVG, for a page that has [`STYLE`](super::STYLE) and shows the title
    /// itself. The same data always gives the same bytes.
    fn draw(&self, size: Size) -> String;
}

/// The size of a drawing in pixels, at its natural scale. The drawing is scaled to the available width; its
/// text is readable only if the available width is not much smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// The width of the drawing, in pixels.
    pub(crate) width: u32,
    /// The height of the drawing, in pixels. Rankings and heat maps ignore this value and choose a height
    /// themselves.
    pub(crate) height: u32,
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

impl Default for Canvas {
    fn default() -> Self {
        Self { svg: Svg::default(), top: EDGE }
    }
}

/// Returns a complete SVG document with a drawing of this size.
pub(super) fn document(svg: Svg, naming: Naming<'_>, size: (f64, f64)) -> String {
    let (width, height) = (size.0.ceil(), size.1.ceil());
    let title = Escaped(naming.title);
    let description = match naming.description {
        "" => String::new(),
        text => format!("<desc>{}</desc>", Escaped(text)),
    };
    format!(
        r#"<svg class="fig" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{title}</title>{description}{}</svg>"#,
        svg.into_text()
    )
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
