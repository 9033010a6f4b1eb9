//! Formats the output of `cargo xtask rfc`.

use std::fmt::Write;

use serde_json::{Value, json};

use super::requirement::{Requirement, Standing};
use super::verdict::Verdict;

/// Returns a table of sections, requirements and tests; then the requirements not done, those that do not
/// apply, and the counts.
pub(super) fn table(verdict: &Verdict) -> String {
    let mut text = String::new();
    let mut rfc = 0;
    for (requirement, tests) in &verdict.rows {
        if requirement.rfc != rfc {
            rfc = requirement.rfc;
            let _ = writeln!(text, "RFC {rfc}");
        }
        if requirement.standing == Standing::Done {
            put_row(&mut text, requirement, tests);
        }
    }
    put_rest(&mut text, verdict, "\nnot done, and why", later);
    put_rest(&mut text, verdict, "\ndoes not apply, and why", never);
    text + "\n" + &summary(verdict)
}

fn put_row(text: &mut String, requirement: &Requirement, tests: &[String]) {
    let Requirement { section, id, asks, .. } = requirement;
    let id = id.as_deref().unwrap_or_default();
    let _ = writeln!(text, "  {section:<10} {id:<8} {asks}");
    let tests = if tests.is_empty() { "NO TEST".to_owned() } else { tests.join(", ") };
    let _ = writeln!(text, "  {:19} {tests}", "");
}

fn put_rest(text: &mut String, verdict: &Verdict, title: &str, why: fn(&Standing) -> Option<&str>) {
    let _ = writeln!(text, "{title}");
    for (requirement, tests) in &verdict.rows {
        let Some(why) = why(&requirement.standing) else { continue };
        let _ = writeln!(text, "  {requirement}: {}: {why}", requirement.asks);
        if !tests.is_empty() {
            let _ = writeln!(text, "    and yet: {}", tests.join(", "));
        }
    }
}

fn later(standing: &Standing) -> Option<&str> {
    if let Standing::Later(why) = standing { Some(why) } else { None }
}

fn never(standing: &Standing) -> Option<&str> {
    if let Standing::Never(why) = standing { Some(why) } else { None }
}

/// Returns the counts as one line.
pub(super) fn summary(verdict: &Verdict) -> String {
    let count = |which: fn(&Standing) -> bool| verdict.count(which);
    let done = count(|standing| *standing == Standing::Done);
    let is_tested = |(one, tests): &&(Requirement, Vec<String>)| {
        one.standing == Standing::Done && !tests.is_empty()
    };
    let tested = verdict.rows.iter().filter(is_tested).count();
    let later = count(|standing| later(standing).is_some());
    let never = count(|standing| never(standing).is_some());
    format!(
        "rfc: {} requirements apply: {tested} of {done} that are done have a test, {later} are not \
         done; {never} do not apply\n",
        done + later
    )
}

/// Returns the rows as a JSON array of objects.
pub(super) fn json(verdict: &Verdict) -> String {
    let row = |(requirement, tests): &(Requirement, Vec<String>)| {
        let (standing, why) = match &requirement.standing {
            Standing::Done => ("done", Value::Null),
            Standing::Later(why) => ("later", json!(why)),
            Standing::Never(why) => ("never", json!(why)),
        };
        json!({
            "rfc": requirement.rfc,
            "section": requirement.section,
            "id": requirement.id,
            "asks": requirement.asks,
            "standing": standing,
            "why": why,
            "tests": tests,
        })
    };
    let rows: Vec<Value> = verdict.rows.iter().map(row).collect();
    format!("{:#}\n", Value::from(rows))
}
