//! Reads the profiles of callgrind.
//!
//! A profile is text. Lines name a function, its file, and the file that instructions were inlined from; the
//! costs of source lines follow. A name is defined once, as `(number) name`; later lines use only the number.
//! The line after a `calls=` line has the cost of the called function, which its own lines have, too.

use std::collections::HashMap;

/// Source of a cost: a function and its files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'t> {
    /// The name of the function.
    pub function: &'t str,
    /// The file that the code is inlined from.
    pub inlined: &'t str,
    /// The file of the function.
    pub home: &'t str,
}

/// A cost line of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Cost<'t> {
    /// The source of the cost.
    pub origin: Origin<'t>,
    /// The function that was called, if this is the cost of calls, and with that of all that they called.
    pub callee: Option<&'t str>,
    /// The sum of the events, by their weights.
    pub cost: f64,
}

/// Returns the costs of the profile `text`, line by line. `weight` returns the cost of one event of a kind; without a
/// list of events, all are instructions (`Ir`).
pub fn costs<'t>(text: &'t str, weight: fn(&str) -> f64) -> impl Iterator<Item = Cost<'t>> {
    let mut reader = Reader { weights: vec![weight("Ir")], ..Reader::default() };
    text.lines().filter_map(move |line| reader.read(line, weight))
}

#[derive(Default)]
struct Reader<'t> {
    files: HashMap<&'t str, &'t str>,
    functions: HashMap<&'t str, &'t str>,
    origin: Origin<'t>,
    callee: &'t str,
    /// `true` if the next cost is that of a called function.
    is_call: bool,
    /// The cost of one event, for each number in a cost line.
    weights: Vec<f64>,
}

impl<'t> Reader<'t> {
    /// Parses `line`. Returns its cost, or `None` if it is no cost line.
    fn read(&mut self, line: &'t str, weight: fn(&str) -> f64) -> Option<Cost<'t>> {
        if let Some(events) = line.strip_prefix("events: ") {
            self.weights = events.split_whitespace().map(weight).collect();
            return None;
        }
        match line.split_once('=') {
            Some(("fl", name)) => {
                self.origin.home = resolved(&mut self.files, name);
                self.origin.inlined = self.origin.home;
            }
            Some(("fi" | "fe", name)) => self.origin.inlined = resolved(&mut self.files, name),
            Some(("fn", name)) => self.origin.function = resolved(&mut self.functions, name),
            Some(("cfi" | "cfl", name)) => _ = resolved(&mut self.files, name),
            Some(("cfn", name)) => self.callee = resolved(&mut self.functions, name),
            Some(("calls", _)) => self.is_call = true,
            Some(_) => {}
            None => return self.cost(line),
        }
        None
    }

    fn cost(&mut self, line: &str) -> Option<Cost<'t>> {
        let (at, counts) = line.split_once(' ')?;
        let is_place =
            at.starts_with(|first: char| "+-*".contains(first) || first.is_ascii_digit());
        if !is_place {
            return None;
        }
        let counts = counts.split_whitespace().map(|count| count.parse::<f64>().unwrap_or(0.0));
        Some(Cost {
            origin: self.origin,
            callee: std::mem::take(&mut self.is_call).then_some(self.callee),
            cost: counts.zip(&self.weights).map(|(count, weight)| count * weight).sum(),
        })
    }
}

/// Returns the name that `text` defines or refers to.
fn resolved<'t>(names: &mut HashMap<&'t str, &'t str>, text: &'t str) -> &'t str {
    match text.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => {
            names.insert(number, name);
            name
        }
        _ => names.get(text).copied().unwrap_or(text),
    }
}
