//! Declares structs of counters together with their names and arithmetic.

/// A field of a struct of [`counters!`](crate::counters!): one number or several.
pub trait Count {
    /// Combines each pair of numbers with `apply`.
    #[must_use]
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self;

    /// The number; `None` if the field has several.
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

/// Declares a struct of counters with the functions `zip_with`, which adds or subtracts two of them, and
/// `named`, which iterates over their names. A field is a `u64`, an array of them, or another such struct.
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
/// let interval = now.zip_with(&then, |now, then| now - then);
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

        impl $name {
            /// Combines each pair of numbers with `apply`: adds two totals, or subtracts two readings of one.
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
