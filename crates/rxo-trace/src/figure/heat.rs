//! Heat maps: one value for each pair of two settings.

use super::draw::{Canvas, Draw, EDGE, Naming, Size, document, text_width};
use super::numbers::{full, short};
use super::svg::{Anchor, Area, Svg, at};

/// A heat map: values on a grid of names. The stronger the colour of a cell, the larger its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HeatMap {
    /// The title of the heat map, in a few words.
    pub(crate) title: String,
    /// A sentence that describes the heat map for readers who cannot see it.
    pub(crate) description: String,
    /// The label of the x axis: the quantity that differs between columns.
    pub(crate) x_label: String,
    /// The names of the columns, from left to right.
    pub(crate) columns: Vec<String>,
    /// The label of the y axis: the quantity that differs between rows.
    pub(crate) y_label: String,
    /// The names of the rows, from top to bottom.
    pub(crate) rows: Vec<String>,
    /// The values of the cells, row by row. Missing and infinite values leave their cell empty.
    pub(crate) values: Vec<f64>,
}

impl HeatMap {
    fn draw_rows(&self, svg: &mut Svg, grid: &Grid) {
        for (row, name) in self.rows.iter().enumerate() {
            let first = grid.cell(row, 0);
            let beside = at(grid.area.x - 8.0, first.y + first.height / 2.0 + 4.0);
            svg.text("fig-tick", Anchor::End, beside, name);
            for column in 0..self.columns.len() {
                let value = self.values.get(row * self.columns.len() + column);
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    self.draw_cell(svg, grid, (row, column), *value);
                }
            }
        }
    }

    fn draw_cell(&self, svg: &mut Svg, grid: &Grid, (row, column): (usize, usize), value: f64) {
        let area = grid.cell(row, column);
        let tip = format!(
            "{} {}, {} {}: {}",
            self.y_label,
            self.rows[row],
            self.x_label,
            self.columns[column],
            full(value)
        );
        svg.cell("fig-cell", area, grid.strength(value), &tip);
        let text = short(value);
        if text_width(&text) + 6.0 <= area.width {
            let middle = at(area.x + area.width / 2.0, area.y + area.height / 2.0 + 4.0);
            svg.text("fig-cell-value", Anchor::Middle, middle, &text);
        }
    }

    /// Draws the names of the columns, except those that would touch the previous name.
    fn draw_columns(&self, svg: &mut Svg, grid: &Grid) {
        let mut taken = f64::NEG_INFINITY;
        for (column, name) in self.columns.iter().enumerate() {
            let cell = grid.cell(0, column);
            let (x, half) = (cell.x + cell.width / 2.0, text_width(name) / 2.0);
            if x - half < taken + 6.0 {
                continue;
            }
            taken = x + half;
            svg.text("fig-tick", Anchor::Middle, at(x, grid.area.bottom() + 18.0), name);
        }
    }
}

impl Draw for HeatMap {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, size: Size) -> String {
        let naming = Naming { title: &self.title, description: &self.description };
        let width = f64::from(size.width);
        let mut canvas = Canvas::default();
        let grid = Grid::fit(self, width, canvas.top);
        let left = at(EDGE, canvas.top + 10.0);
        canvas.svg.text("fig-tick", Anchor::Start, left, &format!("{} (rows)", self.y_label));
        self.draw_rows(&mut canvas.svg, &grid);
        let bottom = grid.area.bottom();
        self.draw_columns(&mut canvas.svg, &grid);
        let middle = at(grid.area.x + grid.area.width / 2.0, bottom + 38.0);
        canvas.svg.text("fig-tick", Anchor::Middle, middle, &self.x_label);
        document(canvas.svg, naming, (width, bottom + 46.0))
    }
}

/// The positions of the cells, and the range of values for their colours.
struct Grid {
    area: Area,
    columns: f64,
    rows: f64,
    low: f64,
    high: f64,
}

impl Grid {
    fn fit(map: &HeatMap, width: f64, top: f64) -> Self {
        let (columns, rows) = (map.columns.len().max(1) as f64, map.rows.len().max(1) as f64);
        let left = EDGE + 8.0 + map.rows.iter().map(|name| text_width(name)).fold(18.0, f64::max);
        let height = rows * (340.0 / rows).clamp(18.0, 44.0);
        let area = Area { x: left, y: top + 20.0, width: (width - left - EDGE).max(40.0), height };
        let finite = map.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        Self { area, columns, rows, low, high }
    }

    fn cell(&self, row: usize, column: usize) -> Area {
        let (width, height) = (self.area.width / self.columns, self.area.height / self.rows);
        let (x, y) = (self.area.x + width * column as f64, self.area.y + height * row as f64);
        Area { x, y, width, height }
    }

    /// Returns the strength of a cell's colour, limited so that the number in the cell stays readable.
    fn strength(&self, value: f64) -> f64 {
        let range = self.high - self.low;
        if range > 0.0 { 0.06 + 0.64 * (value - self.low) / range } else { 0.4 }
    }
}
