//! The version number of the JSON report format.

use serde::{Serialize, Serializer};

/// The version of the JSON of reports: a number that is written into every report. `docs/analyze.schema.json`
/// describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version;

impl Version {
    /// The number of this version. It grows with every change after which programs may have to be changed: a field
    /// that is removed, renamed, or given another meaning. New fields do not change it.
    pub const NUMBER: u32 = 1;
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::NUMBER)
    }
}
