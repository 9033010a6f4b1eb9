//! What all figures share: their size, and the document around the drawing.

use std::fmt::Write;

use super::style::STYLE;
use super::svg::{Anchor, Area, Escaped, Svg, at};

/// What can be drawn.
pub trait Draw {
    /// What it shows, in a few words.
    fn title(&self) -> &str;

    /// The drawing of this size, made for this place. Same data, same bytes.
    fn draw(&self, size: Size, place: Place) -> String;

    /// The drawing as a file of its own.
    #[must_use]
    fn to_svg(&self) -> String {
        self.draw(Size::WIDE, Place::Alone)
    }

    /// The drawing as part of a page that has [`STYLE`] and says the title.
    #[must_use]
    fn to_inline_svg(&self, size: Size) -> String {
        self.draw(size, Place::InPage)
    }
}

/// How large a figure is drawn, in pixels at its natural size. It is scaled to the width it gets;
/// type is only readable when that is not much less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom; rankings and heat maps choose their own.
    pub height: u32,
}

impl Size {
    /// For a page on a desk.
    pub const WIDE: Self = Self { width: 760, height: 380 };
    /// For a page on a telephone.
    pub const NARROW: Self = Self { width: 360, height: 320 };
}

/// Where a figure is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file of its own: with style, ground and visible title.
    Alone,
    /// In a page that has [`STYLE`] and says the title itself.
    InPage,
}

/// What a figure is called, for who sees it and for who does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    pub(super) title: &'a str,
    pub(super) description: &'a str,
}

/// A drawing begun: what is in it so far, and how far down it reaches.
pub(super) struct Canvas {
    pub(super) svg: Svg,
    pub(super) top: f64,
}

impl Canvas {
    /// With the title, if it stands alone, in as many lines as this width takes.
    pub(super) fn begin(naming: Naming<'_>, place: Place, width: f64) -> Self {
        let (mut svg, mut top) = (Svg::default(), EDGE);
        if place == Place::Alone {
            // In larger and bolder type than the rest.
            for line in lines(naming.title, (width - 2.0 * EDGE) / 1.35) {
                svg.text("fig-title", Anchor::Start, at(EDGE, top + 16.0), &line);
                top += 20.0;
            }
            top += 10.0;
        }
        Self { svg, top }
    }
}

/// The whole document around a drawing of this size.
pub(super) fn document(svg: Svg, naming: Naming<'_>, size: (f64, f64), place: Place) -> String {
    let (width, height) = (size.0.ceil(), size.1.ceil());
    let mut text = String::new();
    let namespace =
        if place == Place::Alone { r#"xmlns="http://www.w3.org/2000/svg" "# } else { "" };
    // Writing to a string cannot fail.
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

/// A text in lines of at most `width`, broken between words; a longer word stands alone.
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

/// How wide a text is at most in the type of figures, whichever of its typefaces there is.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 4.0,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 5.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.5,
        // Scripts with characters as wide as high.
        c if c >= '\u{2e80}' => 12.5,
        _ => 7.7,
    }
}

/// Free space at the edges.
pub(super) const EDGE: f64 = 8.0;
