//! `rxo-lab check`: compares two documents of results, claim by claim and series by series.
//!
//! The basis of a value decides: a count may differ by 2 %, virtual time not at all. Processor time and live
//! measurements are reported, and not judged.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use rxo_console::fault::usage;
use rxo_console::output;
use serde::Serialize;
use serde_json::{Value, json};

mod compare;

use self::compare::differences;
use crate::flags::CheckFlags;

/// A difference between two documents.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Difference {
    /// The claim's id, or the experiment, the figure and the series.
    what: String,
    basis: String,
    /// `false` for values that vary with the machine: reported, and not judged.
    is_judged: bool,
    expected: String,
    found: String,
}

impl Difference {
    fn text(&self) -> String {
        let Self { what, basis, is_judged, expected, found } = self;
        let note = if *is_judged { "" } else { ", not judged" };
        format!("{what}: {found}, expected {expected} ({basis}{note})")
    }
}

/// Compares the documents, or replaces the expected one with `--renew`. Prints one line a difference.
///
/// # Errors
/// If judged values differ; as an error of usage, if the documents cannot be compared.
pub(crate) fn run(flags: &CheckFlags) -> Result<()> {
    let results = read(&flags.results)?;
    if flags.renew {
        return renew(&results, &flags.expected);
    }
    let expected = read(&flags.expected)?;
    comparable(&results, &expected)?;
    let differences = differences(&results, &expected);
    match flags.json {
        true => output::json_document(&differences)?,
        false => differences.iter().try_for_each(|it| output::text(&it.text()))?,
    }
    match differences.iter().filter(|difference| difference.is_judged).count() {
        0 => Ok(()),
        count => bail!("{count} values differ from {}", flags.expected.display()),
    }
}

/// Reads a document, or all those of a folder as one.
fn read(path: &Path) -> Result<Value> {
    if !path.is_dir() {
        return read_file(path);
    }
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    let files = entries.iter().map(fs::DirEntry::path);
    let mut files: Vec<_> = files.filter(|it| it.extension() == Some("json".as_ref())).collect();
    files.sort();
    let [first, others @ ..] = &*files else {
        return Err(usage(format!("{}: no .json file; name a folder of results", path.display())));
    };
    let mut all = read_file(first)?;
    for file in others {
        let mut part = read_file(file)?;
        comparable(&part, &all)?;
        if let [Value::Array(list), Value::Array(more)] =
            [&mut all["experiments"], &mut part["experiments"]]
        {
            list.append(more);
        }
    }
    Ok(all)
}

fn read_file(path: &Path) -> Result<Value> {
    let failed = |error: &dyn std::fmt::Display| {
        usage(format!("{}: {error}; name a results.json of rxo-lab all", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    match document["schema"] == "rxo-lab/results/1" {
        true => Ok(document),
        false => Err(failed(&"the schema is not rxo-lab/results/1")),
    }
}

/// Checks that both documents have the same extent and are of the same kind of build: counts depend on both.
fn comparable(results: &Value, expected: &Value) -> Result<()> {
    for (name, path) in [("extent", "/extent"), ("build", "/rxo/build")] {
        let [found, wanted] = [results, expected].map(|it| it.pointer(path).cloned());
        if found != wanted {
            let [found, wanted] = [found, wanted].map(|it| it.unwrap_or_default().to_string());
            return Err(usage(format!(
                "the results have the {name} {found}, the expected ones {wanted}: counts of different {name}s \
                 cannot be compared"
            )));
        }
    }
    Ok(())
}

/// Writes what is compared of `results` to `path`: claims and series, so that a change is a short difference.
fn renew(results: &Value, path: &Path) -> Result<()> {
    let claim = |it: &Value| {
        let [id, basis, status] = ["id", "basis", "status"].map(|key| &it[key]);
        let ours = json!({ "value": it["ours"]["value"] });
        json!({ "id": id, "basis": basis, "status": status, "ours": ours })
    };
    let series = |it: &Value| json!({ "name": it["name"], "values": it["values"] });
    let figure = |it: &Value| {
        let series = mapped(&it["series"], series);
        json!({ "id": it["id"], "basis": it["basis"], "x": it["x"], "series": series })
    };
    let experiment = |it: &Value| {
        let claims = mapped(&it["claims"], claim);
        json!({ "id": it["id"], "claims": claims, "figures": mapped(&it["figures"], figure) })
    };
    let kept = json!({
        "schema": results["schema"],
        "rxo": { "build": results["rxo"]["build"] },
        "extent": results["extent"],
        "experiments": mapped(&results["experiments"], experiment),
    });
    let text = serde_json::to_string_pretty(&kept)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn mapped(list: &Value, of: impl Fn(&Value) -> Value) -> Vec<Value> {
    list.as_array().into_iter().flatten().map(of).collect()
}
