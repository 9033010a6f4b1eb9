//! Enums of reasons.
//!
//! Whatever becomes of a frame has a reason, and every reason a counter. It stands here because the
//! crates that count do not know each other.

/// Declares an enum of reasons, each with the stable name of its counter, so that neither list can
/// miss one. It gets `ALL`, `COUNT` and `name()`.
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
            /// Every reason, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many reasons there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The counter's name; stable across versions.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
