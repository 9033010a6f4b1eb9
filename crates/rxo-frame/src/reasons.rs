//! Declares enums of reasons.
//!
//! Everything that happens to a frame has a reason, and every reason has a counter. This module is in this
//! crate because the crates that count do not depend on each other.

/// Declares an enum of reasons together with the stable name of each reason's counter, so that no list of names
/// can be incomplete. Adds `ALL`, `COUNT` and `name()`.
///
/// # Examples
/// ```
/// rxo_frame::reasons! {
///     /// Why it went.
///     Why {
///         /// Nobody wanted it.
///         Unwanted => "unwanted",
///     }
/// }
/// assert_eq!((Why::COUNT, Why::ALL[0].name()), (1, "unwanted"));
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every reason, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The number of reasons in this enum.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the name of this reason's counter. Stable across versions.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
