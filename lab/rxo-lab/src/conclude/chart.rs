//! Draws the figures of a book over the measurements. Pure.

use anyhow::Result;
use serde_json::{Map, Value};

use super::functions::Point;
use super::scope::Scope;
use super::template::fill;
use crate::claim::{Column, Drawing, Line};
use crate::figure::{Bracket, Figure, Guide, Series, Shape};

/// An x with the scope of its values.
type At<'m> = (String, Scope<'m>);

/// Draws `drawing` without claims; `None` if its measurements are missing.
pub(super) fn draw(scope: &Scope<'_>, drawing: &'static Drawing) -> Result<Option<Figure>> {
    for needed in &drawing.needs {
        let found = scope.point(needed)?;
        if found.is_none_or(|found| found.value == 0.0) {
            return Ok(None);
        }
    }
    let mut columns = columns(scope, &drawing.x)?;
    if drawing.only_measured {
        let has_value = |(_, scope): &At<'_>| -> Result<bool> {
            let ours = drawing.series.iter().filter(|line| !line.is_reference);
            let values = ours.map(|line| Ok(!of_lines(line, drawing.shape, scope)?.is_empty()));
            Ok(values.collect::<Result<Vec<_>>>()?.contains(&true))
        };
        let kept = columns.iter().map(has_value).collect::<Result<Vec<_>>>()?;
        columns =
            columns.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(at, _)| at).collect();
    }
    if columns.len() < drawing.least.max(1) {
        return Ok(None);
    }
    let series = drawing.series.iter().map(|line| series(line, drawing.shape, &columns));
    let condition = drawing.condition.as_ref().map(|template| fill(scope, template));
    Ok(Some(Figure {
        number: &drawing.number,
        y_label: y_label(scope, drawing)?,
        condition: condition.transpose()?.flatten(),
        series: series.collect::<Result<Vec<_>>>()?.concat(),
        guides: guides(scope, drawing)?,
        brackets: brackets(drawing, &columns)?,
        x: columns.into_iter().map(|(text, _)| text).collect(),
        ..Figure::default()
    }))
}

/// Returns every x once; numbers in their order.
fn columns<'m>(scope: &Scope<'m>, said: &[Column]) -> Result<Vec<At<'m>>> {
    let mut all: Vec<At<'m>> = Vec::new();
    let mut add = |text: String, scope: Scope<'m>| {
        if !all.iter().any(|(other, _)| *other == text) {
            all.push((text, scope));
        }
    };
    for column in said {
        match column {
            Column::Name(name) => {
                let bound = [("x".to_owned(), Value::from(name.as_str()))];
                add(scope.book.label(name).to_owned(), scope.with(bound));
            }
            Column::Rows { rows, text } => {
                for row in scope.values(rows)? {
                    let Value::Object(fields) = row else { continue };
                    let scope = scope.with(fields);
                    if let Some(text) = fill(&scope, text)? {
                        let bound = [("x".to_owned(), Value::from(text.as_str()))];
                        add(text, scope.with(bound));
                    }
                }
            }
        }
    }
    let numbers: Option<Vec<f64>> = all.iter().map(|(text, _)| text.parse().ok()).collect();
    if numbers.is_some() {
        let of = |at: &At<'_>| at.0.parse().unwrap_or(0.0_f64);
        all.sort_by(|one, other| of(one).total_cmp(&of(other)));
    }
    Ok(all)
}

/// Returns the series of `line`. Several lines are one for each name or row, and none for one without a value.
fn series(line: &Line, shape: Shape, columns: &[At<'_>]) -> Result<Vec<Series>> {
    let Some((_, scope)) = columns.first() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for of in &line.lines {
        let colour = line.colour.or_else(|| scope.book.colours.get(of).copied());
        let label = scope.book.label(of);
        let name = if line.name.is_empty() {
            label.to_owned()
        } else {
            line.name.replace("{line}", label)
        };
        let bound = Map::from_iter([("line".to_owned(), Value::from(of.as_str()))]);
        all.push(drawn(line, (name, colour, shape), (columns, &bound))?);
    }
    for row in line.rows.as_ref().map_or(Ok(Vec::new()), |rows| scope.values(rows))? {
        let Value::Object(fields) = row else { continue };
        let Some(name) = fill(&scope.with(fields.clone()), &line.name)? else { continue };
        let own = || Some(fields.get("colour")?.as_u64()? as usize);
        all.push(drawn(line, (name, line.colour.or_else(own), shape), (columns, &fields))?);
    }
    if line.lines.is_empty() && line.rows.is_none() {
        let named = (line.name.clone(), line.colour, shape);
        return Ok(vec![drawn(line, named, (columns, &Map::new()))?]);
    }
    let says_something = |series: &Series| {
        series.values.iter().flatten().any(|value| line.keeps_zeros || *value != 0.0)
    };
    Ok(all.into_iter().filter(says_something).collect())
}

/// Draws one series of `line`, whose variables are `bound`.
fn drawn(
    line: &Line,
    (name, colour, shape): (String, Option<usize>, Shape),
    (columns, bound): (&[At<'_>], &Map<String, Value>),
) -> Result<Series> {
    let shape = line.shape.unwrap_or(shape);
    let scopes = columns.iter().map(|(_, scope)| scope.with(bound.clone()));
    let scopes: Vec<Scope<'_>> = scopes.collect();
    let mut series = if shape == Shape::Boxes {
        let samples = scopes.iter().map(|scope| scope.numbers(&line.value));
        Series::boxes(&samples.collect::<Result<Vec<_>>>()?)
    } else {
        let points = scopes.iter().map(|scope| scope.point(&line.value));
        let points: Vec<Option<Point>> = points.collect::<Result<_>>()?;
        let ranges: Vec<_> =
            points.iter().map(|point| point.and_then(|point| point.range)).collect();
        let ranges = if ranges.iter().any(Option::is_some) { ranges } else { Vec::new() };
        Series { ranges, ..Series::new(points.into_iter().map(|point| Some(point?.value))) }
    };
    if let Some(valid) = &line.valid {
        let invalid = |scope: &Scope<'_>| Ok(scope.point(valid)?.is_none_or(|it| it.value <= 0.0));
        series.invalid = scopes.iter().map(invalid).collect::<Result<_>>()?;
    }
    Ok(Series { name, colour, shape, is_reference: line.is_reference, ..series })
}

/// Returns the values of `line` at one x.
fn of_lines(line: &Line, shape: Shape, scope: &Scope<'_>) -> Result<Vec<f64>> {
    let at = [(String::new(), scope.clone())];
    let series = series(line, shape, &at)?;
    Ok(series.iter().flat_map(|series| series.values.iter().flatten().copied()).collect())
}

/// Returns the first label whose expression has a value; empty if the words have it.
fn y_label(scope: &Scope<'_>, drawing: &Drawing) -> Result<String> {
    for (label, of) in &drawing.y_labels {
        if scope.point(of)?.is_some() {
            return Ok(label.clone());
        }
    }
    Ok(String::new())
}

fn guides(scope: &Scope<'_>, drawing: &'static Drawing) -> Result<Vec<Guide>> {
    let guides = drawing.guides.iter().map(|(meaning, of)| {
        let value = scope.point(of)?.map(|point| point.value);
        Ok(value.map(|value| Guide { value, meaning }))
    });
    Ok(guides.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn brackets(drawing: &'static Drawing, columns: &[At<'_>]) -> Result<Vec<Bracket>> {
    let mut brackets = Vec::new();
    for (name, of) in &drawing.brackets {
        for (place, (_, scope)) in columns.iter().enumerate() {
            let to = scope.point(of)?.map(|point| point.value);
            brackets.extend(to.map(|to| Bracket { place, to, name }));
        }
    }
    Ok(brackets)
}
