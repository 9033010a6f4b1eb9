//! All points of a study: the chosen one, those of the sweep, and those that advice is drawn from.
//! A point that is wanted twice has one engine.

use super::Settings;
use super::point::{CHOSEN, Point};
use crate::advice;
use crate::sweep::SweepAxis;

#[derive(Clone, Debug)]
pub(super) struct Points {
    /// Each once, the chosen one first.
    pub(super) all: Vec<Point>,
    /// The sweep's, by their place in `all`, in the order of its grid.
    pub(super) sweep: Vec<usize>,
    /// Settings tried by themselves for advice, each value with its place in `all`.
    pub(super) tried: Vec<(SweepAxis, Vec<usize>)>,
}

impl Points {
    pub(super) fn of(settings: &Settings) -> Self {
        let mut points = Self { all: Vec::new(), sweep: Vec::new(), tried: Vec::new() };
        points.place(settings.chosen);
        match &settings.sweep {
            Some(grid) => {
                points.sweep = grid.points.iter().map(|point| points.place(*point)).collect()
            }
            None if settings.advise => points.try_settings(&settings.chosen),
            None => {}
        }
        debug_assert_eq!(points.all.get(CHOSEN), Some(&settings.chosen));
        points
    }

    fn try_settings(&mut self, chosen: &Point) {
        for axis in advice::axes(chosen) {
            // A value that the policy cannot have is no advice.
            let points: Option<Vec<Point>> =
                axis.values.iter().map(|value| axis.at(chosen, value).ok()).collect();
            if let Some(points) = points {
                let places = points.into_iter().map(|point| self.place(point)).collect();
                self.tried.push((axis, places));
            }
        }
    }

    fn place(&mut self, point: Point) -> usize {
        self.all.iter().position(|known| *known == point).unwrap_or_else(|| {
            self.all.push(point);
            self.all.len() - 1
        })
    }
}
