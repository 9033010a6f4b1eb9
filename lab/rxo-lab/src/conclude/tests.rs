//! Expressions, templates and figures over given rows, and that those of every book can be evaluated.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::expression::{Expression, Step, Word, parse};
use super::scope::Scope;
use super::template::fill;
use super::*;
use crate::claim::{Column, Status, book};
use crate::experiments;
use crate::flags::typed;
use crate::study::Study;

fn rows(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// Returns the figures and the measured claims of a study over `tables`; its other tables are empty.
pub(crate) fn concluded(id: &str, tables: Value) -> (Vec<Figure>, Vec<Claim>) {
    let all = studies();
    let study = all.iter().find(|study| study.id == id).unwrap();
    let mut rows: Map<_, _> =
        study.tables.iter().map(|it| (it.name().to_owned(), json!([]))).collect();
    rows.extend(self::rows(tables));
    (study.derive)(&mut rows).unwrap();
    let (figures, claims) = conclude(book(id).unwrap(), &rows).unwrap();
    (figures, claims.into_iter().filter(is_measured).collect())
}

fn is_measured(claim: &Claim) -> bool {
    claim.status() != Status::NotRepeated
}

/// Returns the verdicts on the claims of a figure.
pub(crate) fn verdicts(figures: &[Figure], number: &str) -> Vec<Option<bool>> {
    let figure = figures.iter().find(|figure| figure.number == number);
    figure.map_or_else(Vec::new, Figure::verdicts)
}

/// Returns the rows of xen's tables, with these costs.
fn costs(costs: Value) -> Map<String, Value> {
    rows(json!({
        "costs": costs, "guests": [], "machines": [], "rates": [], "paced": [], "exchanges": [], "requests": [],
        "several": [], "places": [], "elsewhere": null,
    }))
}

#[test]
fn a_value_is_reached_by_conditions_and_a_missing_one_makes_all_missing() {
    let measured = costs(json!([
        { "system": "xen", "frames_a_poll": 2.55, "instructions_a_byte": 4.0, "on": true, "at": { "n": null } },
        { "system": "da", "frames_a_poll": 2.55, "instructions_a_byte": { "median": 2.0, "min": 1.0, "max": 3.0 } },
    ]));
    let scope = Scope::new(book("xen").unwrap(), &measured).with([("who".to_owned(), "da".into())]);
    let value = |text: &str| scope.point(text).unwrap().map(|point| (point.value, point.range));
    for (text, expected) in [
        ("costs[system=xen on=true at.n=null].instructions_a_byte * 2 - 1", Some((7.0, None))),
        ("costs[system=$who].instructions_a_byte / 2", Some((1.0, Some((0.5, 1.5))))),
        ("1 - costs[system=$who].instructions_a_byte", Some((-1.0, Some((-2.0, 0.0))))),
        ("of_xen('da', 2.55)", Some((0.5, Some((0.25, 0.75))))),
        ("of_xen('lro', 2.55)", None),
        ("costs.instructions_a_byte", None),
        ("max(costs.instructions_a_byte, 1) + -count(costs[frames_a_poll>2.5])", Some((2.0, None))),
        ("max(costs[system=lro].instructions_a_byte, 1)", None),
        ("sum(each(costs, $frames_a_poll))", Some((5.1, None))),
        ("either(costs[system=lro].copies, 7)", Some((7.0, None))),
        (
            "most(costs, 0 - $instructions_a_byte).instructions_a_byte",
            Some((2.0, Some((1.0, 3.0)))),
        ),
        ("sum(ratios(costs.frames_a_poll, each(costs, 2.55)))", Some((2.0, None))),
        ("growth(each(costs, $frames_a_poll))", Some((0.0, Some((0.0, 0.0))))),
        ("growth(1)", None),
        ("range(7, costs[system=da].instructions_a_byte)", Some((7.0, Some((1.0, 3.0))))),
        ("1 / 0", None),
        ("$nobody", None),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    for (text, message) in [("cost", "there is no table cost"), ("lots(1)", "no function lots")] {
        assert!(format!("{:#}", scope.values(text).unwrap_err()).contains(message), "{text}");
    }
    let filled = |template| fill(&scope, template).unwrap();
    assert_eq!(filled("{$who} {2.0:.1} {3:+.0} {12345:grouped}.").unwrap(), "DA 2.0 +3 12,345.");
    assert_eq!(filled("{1:.2 ms|never}, {$nobody:.2 ms|never}").unwrap(), "1.00 ms, never");
    assert_eq!(filled("{words(2, 1, ' with ', $who)}").unwrap(), "2.0 with da");
    assert_eq!((filled("{$nobody}"), filled("{words($nobody, 1)}")), (None, None));
}

#[test]
fn the_bars_of_the_driver_domain_are_judged() {
    let of = |share: f64| {
        let cost = |system: &str, value: f64, copies: f64| {
            [2.55, 32.0].map(|frames| {
                json!({ "system": system, "frames_a_poll": frames, "instructions_a_byte": value, "copies": copies })
            })
        };
        let all = [
            cost("xen", 1.0, 1.0),
            cost("lro", 0.9, 2.0),
            cost("bo", 0.9, 1.5),
            cost("da", share, 2.0),
            cost("bo-da", share, 1.0),
        ];
        let measured = costs(all.concat().into());
        let (figures, _) = conclude(book("xen").unwrap(), &measured).unwrap();
        let verdicts =
            |number: &str| figures.iter().find(|it| it.number == number).unwrap().verdicts();
        (verdicts("Table V"), verdicts("copies"))
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of(0.2), (vec![yes; 4], vec![yes, no]), "a copy too many is seen");
    assert_eq!(of(0.3).0, [no, yes, no, yes]);
    assert_eq!(of(0.95).0, [no; 4]);
}

/// Returns every study.
fn studies() -> Vec<Study> {
    experiments::all(&typed("").unwrap()).unwrap()
}

/// Returns the rows of `study` without a measurement.
fn unmeasured(study: &Study) -> Map<String, Value> {
    let mut rows = study.tables.iter().map(|it| (it.name().to_owned(), json!([]))).collect();
    (study.derive)(&mut rows).unwrap();
    rows
}

#[test]
fn nothing_measured_is_no_figure_and_no_claim() {
    for study in studies() {
        let (figures, claims) = conclude(book(study.id).unwrap(), &unmeasured(&study)).unwrap();
        assert!(
            figures.is_empty() && !claims.iter().any(is_measured),
            "{}: {figures:?} {claims:?}",
            study.id
        );
    }
}

/// Returns the expressions in a template.
fn inside(template: &str) -> Vec<String> {
    let of = |part: &str| {
        let inside = part.split(['}', '|']).next().unwrap().to_owned();
        inside.rsplit_once(':').map_or(inside.clone(), |(of, _)| of.to_owned())
    };
    template.split('{').skip(1).map(of).collect()
}

/// Returns every expression of `book`.
fn texts(book: &'static Book) -> Vec<String> {
    let mut all: Vec<String> = book.define.values().cloned().collect();
    for Derivation { value, detail, because, undecided } in
        book.claims.iter().filter_map(|said| said.ours.as_ref())
    {
        all.push(value.clone());
        all.extend(undecided.iter().map(|(of, _)| of.clone()));
        let templates =
            [detail, because].into_iter().flatten().chain(undecided.iter().map(|it| &it.1));
        all.extend(templates.flat_map(|template| inside(template)));
    }
    for drawing in &book.drawings {
        all.extend(drawing.needs.iter().chain(drawing.guides.values()).cloned());
        all.extend(
            drawing.brackets.values().chain(drawing.series.iter().map(|it| &it.value)).cloned(),
        );
        for column in &drawing.x {
            if let Column::Rows { rows, text } = column {
                all.extend([rows.clone()].into_iter().chain(inside(text)));
            }
        }
        for line in &drawing.series {
            all.extend(line.rows.iter().chain(&line.valid).cloned());
            all.extend(line.rows.iter().flat_map(|_| inside(&line.name)));
        }
        all.extend(drawing.condition.iter().flat_map(|template| inside(template)));
    }
    all
}

/// Returns `expression` and all parts of it.
fn parts(expression: Expression) -> Vec<Expression> {
    let inner = match expression.clone() {
        Expression::Of(root, _) => vec![*root],
        Expression::Call(_, arguments) => arguments,
        Expression::Binary(_, sides) => sides.to_vec(),
        _ => Vec::new(),
    };
    inner.into_iter().flat_map(parts).chain([expression]).collect()
}

/// A field that no row has would make a claim missing, silently: each must be the name of something in the sources
/// or in the book's own tables, and each function and table must exist.
#[test]
fn every_expression_of_every_book_names_what_there_is() {
    let mut code = String::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        code += &std::fs::read_to_string(file).unwrap();
    }
    for study in studies() {
        let (book, rows) = (book(study.id).unwrap(), unmeasured(&study));
        let tables = serde_json::to_string(&book.tables).unwrap();
        let (scope, mut seen) = (Scope::new(book, &rows), BTreeSet::new());
        for text in texts(book) {
            for part in parts(parse(&text).unwrap()) {
                scope
                    .evaluate(&part)
                    .unwrap_or_else(|error| panic!("{}: {text}: {error:#}", study.id));
                let Expression::Of(_, steps) = part else { continue };
                let fields = steps.into_iter().flat_map(|step| match step {
                    Step::Field(Word::Plain(name)) => vec![name],
                    Step::Field(Word::Variable(_)) => Vec::new(),
                    Step::Where(all) => all.into_iter().map(|it| it.field).collect(),
                });
                for name in
                    fields.flat_map(|field| field.split('.').map(str::to_owned).collect::<Vec<_>>())
                {
                    if !seen.insert(name.clone()) {
                        continue;
                    }
                    let quoted = format!("\"{name}\"");
                    let is_field = [format!("{name}:"), format!("{name},"), quoted.clone()];
                    let is_known =
                        is_field.iter().any(|it| code.contains(it)) || tables.contains(&quoted);
                    assert!(is_known, "{}: {text}: no row has {name}", study.id);
                }
            }
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
