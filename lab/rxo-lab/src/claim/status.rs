//! The verdict on a claim: one function of the rule and of what was measured.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Ours;

/// The kind of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// At least a value of the paper, which can be exceeded.
    AtLeast,
    /// At most a value of the paper, which can be exceeded by less.
    AtMost,
    /// Near a value of the paper, on either side.
    Within,
    /// Above a threshold.
    MoreThan,
    /// Below a threshold.
    LessThan,
    /// Growth from the first point to the last, without a step down.
    Grows,
    /// No rule: the value is an input here, so that the claim cannot fail.
    #[default]
    None,
}

/// A rule that decides a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    /// The value that decides, in the claim's unit.
    pub(crate) bound: Option<f64>,
    /// The value that means no effect. Between this value and the bound a claim is weaker, beyond it
    /// contradicted; `None` if no value is weaker.
    pub(crate) neutral: Option<f64>,
    /// The permitted distance from the bound, as a share of the bound; `None` permits none.
    pub(crate) tolerance: Option<f64>,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    NotRepeated,
    Calibration,
    Contradicted,
    Weaker,
    /// The measurements permit no verdict: the interval does not decide, or the machine was busy.
    NoVerdict,
    Reproduced,
    Exceeds,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotRepeated => "not repeated",
            Self::Calibration => "calibration",
            Self::Contradicted => "contradicted",
            Self::Weaker => "weaker",
            Self::NoVerdict => "no verdict",
            Self::Reproduced => "reproduced",
            Self::Exceeds => "exceeds",
        })
    }
}

impl Rule {
    /// Returns the verdict on a claim with the measured value `ours`; `None` if nothing was measured.
    /// A rule whose bound lies inside the interval of `ours` gives no verdict.
    pub(crate) fn status(&self, ours: Option<Ours>) -> Status {
        let Some(ours) = ours else { return Status::NotRepeated };
        let Some(bound) = self.bound else { return Status::Calibration };
        let slack = self.tolerance.unwrap_or_default() * bound.abs();
        let line = Line { bound, slack, neutral: self.neutral };
        match self.kind {
            Kind::None => Status::Calibration,
            Kind::AtLeast => line.status(ours, Reach::Reached, true),
            Kind::MoreThan => line.status(ours, Reach::Passed, false),
            Kind::AtMost => line.mirrored().status(ours.mirrored(), Reach::Reached, true),
            Kind::LessThan => line.mirrored().status(ours.mirrored(), Reach::Passed, false),
            Kind::Within => line.near(ours),
            Kind::Grows => line.growth(ours),
        }
    }
}

/// The reach that a value needs: the bound itself, or more than it.
#[derive(Clone, Copy)]
enum Reach {
    Reached,
    Passed,
}

/// A rule whose larger values are better.
#[derive(Clone, Copy)]
struct Line {
    bound: f64,
    /// The permitted distance from the bound.
    slack: f64,
    neutral: Option<f64>,
}

impl Line {
    /// Returns the same rule for values of the opposite sign.
    fn mirrored(self) -> Self {
        Self { bound: -self.bound, neutral: self.neutral.map(|value| -value), ..self }
    }

    fn status(self, ours: Ours, reach: Reach, can_exceed: bool) -> Status {
        let least = self.bound - self.slack;
        let is_enough = |value: f64| match reach {
            Reach::Reached => value >= least,
            Reach::Passed => value > least,
        };
        match (is_enough(ours.low), is_enough(ours.high)) {
            (true, _) if can_exceed && ours.low > self.bound + self.slack => Status::Exceeds,
            (true, _) => Status::Reproduced,
            (false, true) => Status::NoVerdict,
            (false, false) => self.below(ours.value),
        }
    }

    /// Returns the verdict on a value that does not reach the bound.
    fn below(self, value: f64) -> Status {
        match self.neutral {
            Some(neutral) if value > neutral => Status::Weaker,
            _ => Status::Contradicted,
        }
    }

    /// Returns the verdict of a rule with a bound on both sides.
    fn near(self, ours: Ours) -> Status {
        let (least, most) = (self.bound - self.slack, self.bound + self.slack);
        if ours.low >= least && ours.high <= most {
            return Status::Reproduced;
        }
        if ours.high >= least && ours.low <= most {
            return Status::NoVerdict;
        }
        // Values grow away from the neutral one.
        let is_falling = self.neutral.is_some_and(|neutral| neutral > self.bound);
        let (line, ours) =
            if is_falling { (self.mirrored(), ours.mirrored()) } else { (self, ours) };
        match line.neutral {
            Some(_) if ours.value > line.bound => Status::Exceeds,
            _ => line.below(ours.value),
        }
    }

    /// Returns the verdict on a growth; the interval's lower end is the least step.
    fn growth(self, ours: Ours) -> Status {
        let is_enough = ours.value >= self.bound - self.slack;
        match () {
            () if ours.value <= self.neutral.unwrap_or_default() => Status::Contradicted,
            () if is_enough && ours.low >= 0.0 => Status::Reproduced,
            () => Status::Weaker,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(kind: Kind, bound: f64, neutral: Option<f64>, tolerance: f64) -> Rule {
        Rule { kind, bound: Some(bound), neutral, tolerance: Some(tolerance) }
    }

    fn between(low: f64, high: f64) -> Option<Ours> {
        Some(Ours { value: f64::midpoint(low, high), low, high, count: 3 })
    }

    #[test]
    fn every_verdict_can_be_reached() {
        use Status::*;
        let gain = rule(Kind::AtLeast, 45.0, Some(0.0), 0.0);
        let cost = rule(Kind::AtMost, 0.23, Some(1.0), 0.0);
        let half = rule(Kind::MoreThan, 50.0, None, 0.0);
        let point = |value| between(value, value);
        let rows = [
            (gain, None, NotRepeated),
            (Rule::default(), None, NotRepeated),
            (Rule::default(), point(1.0), Calibration),
            (gain, point(46.0), Exceeds),
            (gain, point(45.0), Reproduced),
            (gain, between(44.0, 60.0), NoVerdict),
            (gain, between(10.0, 20.0), Weaker),
            (gain, between(-9.0, -4.0), Contradicted),
            (cost, point(0.2), Exceeds),
            (cost, point(0.23), Reproduced),
            (cost, between(0.2, 0.4), NoVerdict),
            (cost, point(0.56), Weaker),
            (cost, point(1.1), Contradicted),
            (half, point(90.0), Reproduced),
            (half, point(50.0), Contradicted),
            (rule(Kind::LessThan, 2.0, None, 0.0), point(1.9), Reproduced),
        ];
        for (rule, ours, status) in rows {
            assert_eq!(rule.status(ours), status, "{rule:?} {ours:?}");
        }
    }

    #[test]
    fn a_rule_with_two_sides_tells_more_from_less() {
        use Status::*;
        let share = rule(Kind::Within, 20.0, None, 0.25);
        let saved = rule(Kind::Within, 20.0, Some(0.0), 0.25);
        let ratio = rule(Kind::Within, 0.4, Some(1.0), 0.1);
        let rows = [
            (share, (15.0, 25.0), Reproduced),
            (share, (24.0, 26.0), NoVerdict),
            (share, (72.0, 72.0), Contradicted),
            (saved, (30.0, 30.0), Exceeds),
            (saved, (10.0, 10.0), Weaker),
            (saved, (-1.0, -1.0), Contradicted),
            (ratio, (0.2, 0.2), Exceeds),
            (ratio, (0.8, 0.8), Weaker),
            (ratio, (1.2, 1.2), Contradicted),
        ];
        for (rule, (low, high), status) in rows {
            assert_eq!(rule.status(between(low, high)), status, "{rule:?} {low} {high}");
        }
    }

    #[test]
    fn growth_needs_every_step() {
        let grows = rule(Kind::Grows, 2.7, Some(0.0), 0.0);
        let status = |value, low| grows.status(Some(Ours { value, low, high: value, count: 5 }));
        assert_eq!(status(3.0, 0.1), Status::Reproduced);
        assert_eq!(status(3.0, -0.5), Status::Weaker, "one step goes down");
        assert_eq!(status(1.0, 0.1), Status::Weaker);
        assert_eq!(status(-1.0, -2.0), Status::Contradicted);
    }

    proptest! {
        /// A better measurement never gets a worse verdict.
        #[test]
        fn verdicts_are_monotone(
            bound in -100.0..100.0_f64,
            below in 0.1..50.0_f64,
            tolerance in 0.0..0.2_f64,
            low in -200.0..200.0_f64,
            width in 0.0..50.0_f64,
            better in 0.0..100.0_f64,
            kind in prop::sample::select(vec![Kind::AtLeast, Kind::MoreThan, Kind::AtMost, Kind::LessThan]),
        ) {
            let up = if matches!(kind, Kind::AtLeast | Kind::MoreThan) { 1.0 } else { -1.0 };
            let rule = rule(kind, bound, Some(bound - up * below), tolerance);
            let [before, after] = [0.0, up * better].map(|by| between(low + by, low + width + by));
            prop_assert!(rule.status(before) <= rule.status(after), "{:?}", (rule, before, after));
        }
    }
}
