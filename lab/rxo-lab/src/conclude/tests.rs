//! Expressions, templates and figures over given rows, and that those of every book can be evaluated.

use serde_json::json;

use super::scope::Scope;
use super::template::fill;
use super::*;
use crate::claim::book;
use crate::flags::{AcksFlags, RunFlags, typed};
use crate::menon;
use crate::study::Study;
use crate::xen;

fn rows(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
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
        ("sum(each(costs, $frames_a_poll))", Some((5.1, None))),
        ("either(costs[system=lro].copies, 7)", Some((7.0, None))),
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
    assert_eq!((filled("{$nobody}"), filled("{$nobody:.1|-}").as_deref()), (None, Some("-")));
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
fn studies(flags: &str) -> [Study; 4] {
    let flags: RunFlags = typed(flags).unwrap();
    [
        xen::study(&flags).unwrap(),
        menon::receive::study(&flags).unwrap(),
        menon::card::study(&flags).unwrap(),
        menon::acks::study(&AcksFlags::with(&flags)).unwrap(),
    ]
}

#[test]
fn nothing_measured_is_no_figure_and_no_claim() {
    for study in studies("") {
        let mut rows: Map<String, Value> =
            study.tables.iter().map(|table| (table.name().to_owned(), json!([]))).collect();
        (study.derive)(&mut rows).unwrap();
        let (figures, claims) = conclude(book(study.id).unwrap(), &rows).unwrap();
        assert!(figures.is_empty() && claims.is_empty(), "{}: {figures:?} {claims:?}", study.id);
    }
}
