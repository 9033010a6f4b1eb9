use super::*;

fn measured_and_published() -> Figure {
    Figure::new(
        "Packets eliminated",
        Axis::categories("payload", ["2 KB", "4 KB"]),
        Axis::linear("packets of 10,000"),
    )
    .with(Series::bars("here", [4_800.0, 6_400.0]).colour(0))
    .with(Series::bars("paper", [5_000.0, 6_600.0]).colour(0).reference())
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
    let svg = measured_and_published().to_svg();
    assert_well_formed(&svg);
    for part in [
        r#"xmlns="http://www.w3.org/2000/svg""#,
        r#"role="img""#,
        "<title>Packets eliminated</title>",
        "<desc>Both rise with the payload.</desc>",
        "prefers-color-scheme:dark",
        "<title>here, payload 4 KB: 6,400</title>",
        "<title>paper, payload 2 KB: 5,000</title>",
        "fig-bar-hollow",
    ] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
}

#[test]
fn a_long_title_has_as_many_lines_as_it_needs() {
    let title = "Packets eliminated of 10,000 ".repeat(6);
    let svg = Figure { title, ..measured_and_published() }.to_svg();
    assert_well_formed(&svg);
    assert_eq!(svg.matches("class=\"fig-title\"").count(), 3, "{svg}");
    assert_eq!(measured_and_published().to_svg().matches("class=\"fig-title\"").count(), 1);
}

#[test]
fn in_a_page_there_is_no_second_style_and_no_second_title() {
    let svg = measured_and_published().to_inline_svg(Size::NARROW);
    assert_well_formed(&svg);
    assert!(!svg.contains("<style>") && !svg.contains("fig-title") && !svg.contains("xmlns"));
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
    let axes = (Axis::whole("segments"), Axis::share("of all"));
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

/// Returns two lines with smallest and largest values; the first point of the second line has none.
fn with_ranges() -> Figure {
    let ranges = [Some((90.0, 120.0)), Some((1.0, 30.0))];
    Figure::new("ranges", Axis::categories("payload", ["2 KB", "4 KB"]), Axis::linear("percent"))
        .with(Series::over_categories("one", [100.0, 20.0]).ranges(ranges))
        .with(Series::over_categories("other", [110.0, 10.0]).ranges([None, Some((9.0, 11.0))]))
}

#[test]
fn ranges_are_drawn_and_have_room() {
    let svg = with_ranges().to_svg();
    assert_well_formed(&svg);
    assert_eq!(svg.matches("class=\"fig-range\"").count(), 3, "{svg}");
    assert!(svg.contains(">120</text>") || svg.contains(">150</text>"), "the axis ends at 100");
    let bars = Figure::new("bars", Axis::categories("x", ["a"]), Axis::linear("y"))
        .with(Series::bars("one", [5.0]).ranges([Some((4.0, 6.0))]));
    assert!(bars.to_svg().contains("fig-range-bar"));
}

/// Returns the x coordinates of the vertical parts of ranges.
fn range_places(svg: &str) -> Vec<&str> {
    let outlines = svg.split("class=\"fig-range\" d=\"M").skip(1);
    outlines.map(|outline| outline.split(',').next().unwrap()).collect()
}

#[test]
fn ranges_of_several_series_stand_beside_each_other() {
    let svg = with_ranges().to_svg();
    let places = range_places(&svg);
    assert_eq!(places.len(), 3);
    assert_ne!(places[1], places[2], "both are of 4 KB: {svg}");
}

#[test]
fn an_invalid_point_is_a_cross_that_flattens_nothing() {
    let outlier = |invalid: bool| {
        let series = Series::over_categories("one", [900.0, 20.0, 21.0]).invalid([invalid]);
        Figure::new("outlier", Axis::categories("x", ["a", "b", "c"]), Axis::linear("y"))
            .with(series)
            .to_svg()
    };
    let svg = outlier(true);
    assert_well_formed(&svg);
    assert!(!svg.contains(">1000</text>") && svg.contains(">20</text>"), "{svg}");
    assert!(svg.contains("<title>one, x a: 900 (invalid)</title>"), "{svg}");
    assert!(svg.contains("invalid: see the text"), "the legend says what a cross is");
    let line = svg.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(line.split(' ').count(), 2, "no line leads to it: {line}");
    // Beyond the end of the axis: an arrow above the cross. One cross is the legend's.
    assert_eq!(svg.matches("class=\"fig-cross\"").count(), 3, "{svg}");
    assert!(outlier(false).contains(">1000</text>"));
}

#[test]
fn stacks_add_up_and_brackets_name_a_part() {
    let figure = Figure::new("stack", Axis::categories("x", ["a", "b"]), Axis::linear("y"))
        .with(Series::stack("low", [30.0, 10.0]))
        .with(Series::stack("high", [60.0, f64::NAN]))
        .bracket(Bracket { x: 0.0, from: 0.0, to: 30.0, name: "part".into() });
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert!(svg.contains(">100</text>"), "the axis has room for 90: {svg}");
    let rectangles: Vec<[f64; 2]> = svg
        .split("<rect class=\"fig-solid\"")
        .skip(1)
        .filter(|rectangle| rectangle.contains("<title>"))
        .map(|rectangle| {
            ["y", "height"].map(|name| {
                let value = rectangle.split(&format!(" {name}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            })
        })
        .collect();
    let [low, _, high] = rectangles[..] else { panic!("{rectangles:?}") };
    assert!((high[0] + high[1] - low[0]).abs() < 0.3, "one stands on the other: {rectangles:?}");
    assert!((high[1] - 2.0 * low[1]).abs() < 0.5, "{rectangles:?}");
    assert!(svg.contains(">part</text>") && svg.contains(">30</text>"));
}

/// Returns the number in `attribute` of each element that begins with `element`.
fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let begin = format!(" {attribute}=\"");
    let number = |rest: &str| rest.split(begin.as_str()).nth(1)?.split('"').next()?.parse().ok();
    svg.split(element).skip(1).filter_map(number).collect()
}

#[test]
fn a_stack_without_brackets_stands_over_its_place() {
    let stack = Figure::new("stack", Axis::categories("x", ["here"]), Axis::linear("y"))
        .with(Series::stack("part", [30.0]));
    let left = |svg: &str| numbers(svg, "<rect class=\"fig-solid\"", "x")[0];
    let place = |svg: &str| {
        let before = svg.split(">here</text>").next().unwrap();
        numbers(&before[before.rfind("<text").unwrap()..], "<text", "x")[0]
    };
    let alone = stack.to_svg();
    let width = numbers(&alone, "<rect class=\"fig-solid\"", "width")[0];
    assert!((left(&alone) + width / 2.0 - place(&alone)).abs() < 0.3, "{alone}");
    let bracket = Bracket { x: 0.0, from: 0.0, to: 30.0, name: "part".into() };
    assert!(left(&stack.bracket(bracket).to_svg()) < left(&alone));
}

#[test]
fn the_label_of_a_small_bracket_stays_above_the_axis() {
    let svg = Figure::new("stack", Axis::categories("x", ["here", "there"]), Axis::linear("y"))
        .with(Series::stack("part", [1.0, 1_000.0]))
        .bracket(Bracket { x: 0.0, from: 0.0, to: 1.0, name: "part".into() })
        .to_svg();
    let before = svg.split(">1</text>").next().unwrap();
    let label = &before[before.rfind("<text").unwrap()..];
    let bottom = numbers(&svg, "<rect class=\"fig-solid\"", "y")[0]
        + numbers(&svg, "<rect class=\"fig-solid\"", "height")[0];
    assert!(numbers(label, "<text", "y")[0] < bottom, "{svg}");
}

#[test]
fn a_column_has_room_only_for_bars_that_it_has() {
    let figure = Figure::new("bars", Axis::categories("x", ["paper", "here"]), Axis::linear("y"))
        .with(Series::bars("paper", [5.0, f64::NAN]).reference())
        .with(Series::bars("here", [f64::NAN, 5.0]));
    let svg = figure.to_svg();
    let tipped = |class: &str| {
        let begin = format!("<rect class=\"{class}\" x=\"");
        let mut rectangles = svg.split(begin.as_str()).skip(1);
        // The bar in the legend has no title, so its element ends at once.
        let is_bar = |rectangle: &&str| !rectangle.split('>').next().unwrap().ends_with('/');
        let bar = rectangles.find(is_bar).unwrap();
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        number(bar) + number(bar.split("width=\"").nth(1).unwrap()) / 2.0
    };
    // The bar is in the middle of its half, not beside it.
    let (paper, here) = (tipped("fig-bar-hollow"), tipped("fig-solid"));
    let names: Vec<f64> = svg
        .split("text-anchor=\"middle\" x=\"")
        .skip(1)
        .map(|text| text.split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!((paper - names[0]).abs() < 0.3 && (here - names[1]).abs() < 0.3, "{svg}");
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

#[test]
fn boxplots_stand_side_by_side_with_their_quartiles_and_ranges() {
    let boxes = |name: &str, median: f64| {
        let quartiles = vec![Some((median - 1.0, median + 2.0)), None];
        let ranges = [Some((median - 4.0, median + 5.0)), None];
        Series::boxes(name, [median, f64::NAN], quartiles).ranges(ranges)
    };
    let figure = Figure::new("times", Axis::categories("x", ["88", "168"]), Axis::linear("s"))
        .with(boxes("with", 10.0).colour(1))
        .with(boxes("without", 12.0).colour(0));
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert_eq!(svg.matches("class=\"fig-box\"").count(), 2, "a place without a value has none");
    assert_eq!(svg.matches("class=\"fig-range\"").count(), 2);
    assert!(svg.contains("<title>with, x 88: 10</title>"), "{svg}");
}
