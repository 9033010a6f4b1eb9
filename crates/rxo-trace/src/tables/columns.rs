//! Builds a table, column by column.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};

use super::Table;

/// The columns that were added to a table so far, with their names and types. All columns must have equal
/// length.
#[derive(Default)]
pub(super) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(super) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        self.column(name, PrimitiveArray::<UInt64Type>::from_iter_values(values), false)
    }

    pub(super) fn some_count(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        self.column(name, values.collect::<PrimitiveArray<UInt64Type>>(), true)
    }

    pub(super) fn small(self, name: &str, values: impl Iterator<Item = u16>) -> Self {
        self.column(name, PrimitiveArray::<UInt16Type>::from_iter_values(values), false)
    }

    pub(super) fn some_small(self, name: &str, values: impl Iterator<Item = Option<u16>>) -> Self {
        self.column(name, values.collect::<PrimitiveArray<UInt16Type>>(), true)
    }

    pub(super) fn number(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        self.column(name, PrimitiveArray::<Float64Type>::from_iter_values(values), false)
    }

    pub(super) fn flag(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.column(name, values.map(Some).collect::<BooleanArray>(), false)
    }

    pub(super) fn some_flag(self, name: &str, values: impl Iterator<Item = Option<bool>>) -> Self {
        self.column(name, values.collect::<BooleanArray>(), true)
    }

    pub(super) fn text<T: AsRef<str>>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        self.column(name, StringArray::from_iter_values(values), false)
    }

    pub(super) fn some_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        self.column(name, values.collect::<StringArray>(), true)
    }

    /// Adds a column of nanoseconds since 1970 UTC. Times after the year 2262 become the latest possible time.
    pub(super) fn instant(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let values = values.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let values = PrimitiveArray::<TimestampNanosecondType>::from_iter_values(values);
        self.column(name, values.with_timezone("UTC"), false)
    }

    fn column(mut self, name: &str, values: impl Array + 'static, has_gaps: bool) -> Self {
        self.fields.push(Field::new(name, values.data_type().clone(), has_gaps));
        self.arrays.push(Arc::new(values));
        self
    }

    /// Returns the table with all columns that were added.
    ///
    /// # Errors
    /// If the columns differ in length.
    pub(super) fn finish(self) -> Table {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }
}
