//! Declares structs of counters together with their names and arithmetic.

use crate::Duration;

/// The value of a field in a struct of [`counters!`](crate::counters!): one number, or several.
pub trait Count {
    /// Combines each pair of numbers with `apply`.
    #[must_use]
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self;

    /// Returns the number; `None` if the field has several.
    fn single(&self) -> Option<u64>;
}

impl Count for u64 {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        apply(*self, *other)
    }

    fn single(&self) -> Option<u64> {
        Some(*self)
    }
}

impl<const N: usize> Count for [u64; N] {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        core::array::from_fn(|n| apply(self[n], other[n]))
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

/// A duration counts as its number of nanoseconds.
impl Count for Duration {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        let ns = |time: &Self| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self::from_nanos(apply(ns(self), ns(other)))
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

/// Combines two values that are `Some`; if only one is `Some`, returns that value.
impl<C: Count + Clone> Count for Option<C> {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        match (self, other) {
            (Some(ours), Some(theirs)) => Some(ours.zip(theirs, apply)),
            (ours, theirs) => ours.as_ref().or(theirs.as_ref()).cloned(),
        }
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

/// Declares a struct of counters, with the names of its fields and with functions that add and subtract two
/// such structs. A field is a `u64`, an array of `u64`, a `Duration`, another such struct, or any other
/// [`Count`].
///
/// # Examples
/// ```
/// rxo_frame::counters! {
///     /// What a door counts.
///     #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
///     pub struct DoorCounters {
///         /// How often it was opened.
///         pub opened: u64,
///         /// How often it was locked.
///         pub locked: u64,
///     }
/// }
///
/// let (then, now) = (DoorCounters { opened: 1, locked: 0 }, DoorCounters { opened: 3, locked: 2 });
/// let interval = now.since(&then);
/// assert!(interval.named().eq([("opened", 2), ("locked", 2)]));
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$of:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $count:ty,)*
    }) => {
        $(#[$of])*
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $count,)*
        }

        #[allow(dead_code, reason = "a struct that is not public need not use all of them")]
        impl $name {
            /// The names of the fields.
            $vis const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Returns the increase of each number since `earlier`, a reading of the same counters.
            #[must_use]
            $vis fn since(&self, earlier: &Self) -> Self {
                self.zip_with(earlier, u64::saturating_sub)
            }

            /// Returns the sum of both structs, number by number.
            #[must_use]
            $vis fn plus(&self, other: &Self) -> Self {
                self.zip_with(other, u64::saturating_add)
            }

            /// Applies `apply` to each pair of numbers.
            #[must_use]
            $vis fn zip_with(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
                Self { $($field: $crate::Count::zip(&self.$field, &other.$field, apply),)* }
            }

            /// Iterates over the fields that are a single number, with their names, in the order of
            /// declaration.
            $vis fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                let fields = [$((stringify!($field), $crate::Count::single(&self.$field)),)*];
                fields.into_iter().filter_map(|(name, number)| Some((name, number?)))
            }
        }

        impl $crate::Count for $name {
            fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
                self.zip_with(other, apply)
            }

            fn single(&self) -> Option<u64> {
                None
            }
        }
    };
}
