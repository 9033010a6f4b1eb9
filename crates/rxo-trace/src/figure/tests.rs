use super::*;

trait ToSvg: Draw {
    /// Draws a figure as wide as a page.
    fn to_svg(&self) -> String {
        self.draw(Size { width: 760, height: 380 })
    }
}

impl<T: Draw> ToSvg for T {}

fn two_lines() -> Figure {
    Figure::new(
        "Packets eliminated",
        Axis::categories("payload", ["2 KB", "4 KB"]),
        Axis::linear("packets of 10,000"),
    )
    .with(Series::over_categories("here", [4_800.0, 6_400.0]).colour(0))
    .with(Series::over_categories("there", [5_000.0, 6_600.0]))
    .describe("Both rise with the payload.")
}

/// Asserts that every opened element is closed, in order.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(begin) = rest.find('<') {
        let end = begin + rest[begin..].find('>').expect("a tag ends");
        let tag = &rest[begin + 1..end];
        let name = |tag: &str| tag.split([' ', '>']).next().unwrap_or_default().to_owned();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name(closed)), "in {svg}");
        } else if !tag.ends_with('/') {
            open.push(name(tag));
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?} is not closed in {svg}");
}

#[test]
fn a_figure_says_what_it_is_and_what_each_mark_is() {
    let svg = two_lines().to_svg();
    assert_well_formed(&svg);
    assert!(!svg.contains("<style>") && !svg.contains("xmlns"), "the page has these");
    for part in [
        r#"role="img""#,
        "<title>Packets eliminated</title>",
        "<desc>Both rise with the payload.</desc>",
        "<title>here, payload 4 KB: 6,400</title>",
        "<title>there, payload 2 KB: 5,000</title>",
    ] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
}

#[test]
fn what_comes_from_outside_stays_text() {
    let evil = "</title><script>alert(1)</script>\"'&\u{1}";
    let figure = Figure::new(evil, Axis::categories(evil, [evil, "b"]), Axis::linear(evil))
        .with(Series::line(evil, [(0.0, 1.0), (1.0, 2.0)]))
        .with(Series::steps(evil, [(0.0, 1.0)]))
        .guide(Guide::Y(1.5, evil.into()))
        .describe(evil);
    let map = HeatMap {
        title: evil.into(),
        columns: vec![evil.into()],
        rows: vec![evil.into()],
        values: vec![1.0],
        ..HeatMap::default()
    };
    let bar = Bar { name: evil.into(), value: 1.0, text: evil.into(), colour: 0 };
    let ranking = Ranking { title: evil.into(), bars: vec![bar], ..Ranking::default() };
    for svg in [figure.to_svg(), map.to_svg(), ranking.to_svg()] {
        assert!(!svg.contains("<script") && !svg.contains('\u{1}'), "{svg}");
        assert_well_formed(&svg);
    }
}

#[test]
fn values_that_cannot_stand_anywhere_leave_a_gap() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 1.0), (f64::INFINITY, 2.0)];
    let figure = Figure::new("gaps", Axis::linear("x"), Axis::linear("y"))
        .with(Series::line("a", points.into_iter().chain([(5.0, 1.0)])));
    let svg = figure.to_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(svg.matches("<polyline").count(), 1, "one stretch has two points: {svg}");
}

#[test]
fn on_a_logarithmic_axis_nothing_stands_at_zero() {
    let svg = Figure::new("log", Axis::logarithmic("x"), Axis::linear("y"))
        .with(Series::line("a", [(0.0, 1.0), (1.0, 1.0), (10.0, 2.0), (100.0, 3.0)]))
        .to_svg();
    assert_eq!(svg.matches("<path class=\"fig-solid\"").count(), 3, "{svg}");
}

#[test]
fn a_figure_of_nothing_says_so() {
    let axes = [Axis::linear("x"), Axis::logarithmic("x"), Axis::categories("x", [""; 0])];
    for x in axes {
        let svg = Figure::new("empty", x, Axis::linear("y")).to_svg();
        assert!(svg.contains("nothing to show") && !svg.contains("NaN"), "{svg}");
    }
    assert_well_formed(&HeatMap::default().to_svg());
    assert_well_formed(&Ranking::default().to_svg());
}

#[test]
fn a_single_value_has_room_around_it() {
    for x in [Axis::linear("x"), Axis::logarithmic("x")] {
        let svg =
            Figure::new("one", x, Axis::linear("y")).with(Series::line("a", [(3.0, 0.0)])).to_svg();
        assert!(!svg.contains("NaN") && svg.contains("<path"), "{svg}");
    }
}

#[test]
fn a_cell_without_value_stays_empty() {
    let map = HeatMap {
        title: "grid".into(),
        x_label: "flows".into(),
        columns: vec!["1".into(), "2".into()],
        y_label: "bytes".into(),
        rows: vec!["a".into(), "b".into()],
        values: vec![1.0, f64::NAN, 3.0],
        ..HeatMap::default()
    };
    let svg = map.to_svg();
    assert_eq!(svg.matches("class=\"fig-cell\"").count(), 2, "{svg}");
    assert!(svg.contains("<title>bytes b, flows 1: 3</title>"), "{svg}");
}

/// The colours have enough contrast in both schemes (WCAG 2.2): 3:1 for everything that is needed to
/// understand a figure (1.4.11), and 4.5:1 for text (1.4.3).
#[test]
fn colours_stand_out_in_both_schemes() {
    let (light, dark) = STYLE.split_once("@media").unwrap();
    for (scheme, ground) in [(light, "#ffffff"), (dark, "#14171c")] {
        let colours: Vec<&str> = scheme.split("{color:").skip(1).map(|text| &text[..7]).collect();
        assert_eq!(colours.len(), 8, "{scheme}");
        for colour in colours {
            assert!(contrast(colour, ground) >= 4.0, "{colour} on {ground}");
        }
    }
    for (text, ground) in [("#59636e", "#ffffff"), ("#a3acb8", "#14171c")] {
        assert!(contrast(text, ground) >= 4.5 && STYLE.contains(text), "{text} on {ground}");
    }
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the relative luminance of the colour `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let part = |from: usize| {
        let value = f64::from(u8::from_str_radix(&colour[from..from + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

#[test]
fn a_step_is_level_and_then_upright() {
    let axes = (Axis { is_whole: true, ..Axis::linear("segments") }, Axis::share("of all"));
    let figure = Figure::new("steps", axes.0.between(2.0, 4.0), axes.1.between(0.0, 1.0))
        .with(Series::steps("share", [(2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]));
    let svg = figure.to_svg();
    let line = svg.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
    let points: Vec<(&str, &str)> =
        line.split(' ').map(|point| point.split_once(',').unwrap()).collect();
    assert_eq!(points.len(), 5, "{line}");
    for pair in points.windows(2) {
        let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
        assert!(x == next_x || y == next_y, "slanted: {line}");
    }
    // Only whole numbers are labelled: no 2.5 segments.
    let names: Vec<&str> = ["2", "2.5", "3", "3.5", "4"]
        .into_iter()
        .filter(|name| svg.contains(&format!(">{name}</text>")))
        .collect();
    assert_eq!(names, ["2", "3", "4"]);
}

#[test]
fn a_long_line_has_some_of_the_legends_markers() {
    let points = (0..100).map(|x| (f64::from(x), f64::from(x)));
    let figure = Figure::new("long", Axis::linear("x"), Axis::linear("y"))
        .with(Series::line("a", points.clone()))
        .with(Series::line("b", points.map(|(x, y)| (x, 2.0 * y))));
    let svg = figure.to_svg();
    let shown = svg.matches("<path class=\"fig-solid\"").count();
    assert!((8..40).contains(&shown), "{shown}: two in the legend, some on the lines");
    assert!(svg.matches("fig-touch\"").count() > 150, "all can be pointed at");
}

#[test]
fn names_of_guides_do_not_stand_on_data() {
    let figure = Figure::new("guides", Axis::linear("x"), Axis::linear("y"))
        .with(Series::line("a", [(0.0, 0.0), (10.0, 100.0)]))
        .guide(Guide::Y(50.0, "half".into()))
        .guide(Guide::X(5.0, "this traffic".into()));
    let svg = figure.to_svg();
    let y_of = |name: &str| {
        let head = svg.split(&format!(">{name}</text>")).next().unwrap();
        head.rsplit(" y=\"").next().unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
    };
    let top = y_of("100") - 4.0;
    assert!(y_of("half") < top && y_of("this traffic") < top && y_of("y") < y_of("this traffic"));
    // With several, the legend says which is which.
    let two = figure.guide(Guide::Y(80.0, "most".into())).to_svg();
    assert!(two.contains(">half (50)</text>") && two.contains(">most (80)</text>"), "{two}");
}
