//! All points (combinations of policy and poll rule) of a study: the chosen point, the points of the sweep, and
//! the points for advice. Equal points share one engine.

use rxo_coalesce::Hold;

use super::Settings;
use super::point::{CHOSEN, Point};
use crate::advice::{self, Attempts};

#[derive(Clone, Debug)]
pub(super) struct Points {
    /// All points, each once, with the chosen one first.
    pub(super) all: Vec<Point>,
    /// The points of the sweep as indices into `all`, in the order of the sweep's grid.
    pub(super) sweep: Vec<usize>,
    /// The settings to try for advice, as indices into `all`.
    pub(super) attempts: Attempts,
}

impl Points {
    pub(super) fn of(settings: &Settings) -> Self {
        let mut points = Self { all: Vec::new(), sweep: Vec::new(), attempts: Attempts::default() };
        points.place(settings.chosen);
        match &settings.sweep {
            Some(grid) => {
                points.sweep = grid.points.iter().map(|point| points.place(*point)).collect()
            }
            None if settings.advise => points.try_settings(&settings.chosen),
            None => {}
        }
        debug_assert_eq!(points.all.get(CHOSEN), Some(&settings.chosen.on_host()));
        points
    }

    fn try_settings(&mut self, chosen: &Point) {
        for axis in advice::axes(chosen) {
            if axis.key == "max_segments" && chosen.policy.hold == Hold::EndOfPoll {
                self.attempts.limits = Some(axis);
                continue;
            }
            // Values that are invalid for the policy are left out of the advice.
            let points: Option<Vec<Point>> =
                axis.values.iter().map(|value| axis.at(chosen, value).ok()).collect();
            if let Some(points) = points {
                let places = points.into_iter().map(|point| self.place(point)).collect();
                self.attempts.axes.push((axis, places));
            }
        }
        for poll in advice::polls(chosen) {
            let place = self.place(Point { poll, ..*chosen });
            self.attempts.polls.push(place);
        }
    }

    /// Adapts the point to the assumed sink, because an engine depends on the capabilities of its sink, and
    /// returns the index of the point. Adds the point if it is new.
    fn place(&mut self, point: Point) -> usize {
        let point = point.on_host();
        self.all.iter().position(|known| *known == point).unwrap_or_else(|| {
            self.all.push(point);
            self.all.len() - 1
        })
    }
}
