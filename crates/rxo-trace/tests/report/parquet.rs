//! The Parquet tables, read back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rxo_trace::report::Report;

use crate::fixture;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn of(report: &Report, name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-parquet-{name}-{}", std::process::id()));
        rxo_trace::parquet::write(report, &path.join("deeper")).unwrap();
        Self(path)
    }

    fn table(&self, name: &str) -> RecordBatch {
        read(&self.0.join("deeper").join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = std::sync::Arc::clone(reader.schema());
    let mut batches = reader.with_batch_size(1_000_000).build().unwrap();
    batches.next().map_or_else(|| RecordBatch::new_empty(schema), |batch| batch.unwrap())
}

fn counts(table: &RecordBatch, name: &str) -> Vec<u64> {
    table[name].as_primitive::<UInt64Type>().values().to_vec()
}

fn texts(table: &RecordBatch, name: &str) -> Vec<String> {
    let column = table[name].as_string::<i32>();
    column.iter().map(|text| text.unwrap_or("NULL").to_owned()).collect()
}

#[test]
fn every_flow_comes_back_as_it_was() {
    let report = fixture::report();
    let folder = Folder::of(&report, "flows");
    let table = folder.table("flows.parquet");
    assert_eq!(table.num_rows(), report.flows.len());
    assert_eq!(
        texts(&table, "source"),
        report.flows.iter().map(|flow| flow.source.clone()).collect::<Vec<_>>()
    );
    assert_eq!(
        counts(&table, "payload_bytes"),
        report.flows.iter().map(|flow| flow.payload_bytes).collect::<Vec<_>>()
    );
    let vlans = table["vlan"].as_primitive::<UInt16Type>();
    assert!(vlans.is_null(0) && vlans.value(1) == 8);
    let first = table["first_at"].as_primitive::<TimestampNanosecondType>();
    assert_eq!(first.value(1), 1_795_253_385_123_456_789 + 1_000);
    assert_eq!(
        table.schema().field_with_name("first_at").unwrap().data_type().to_string(),
        "Timestamp(ns, \"UTC\")"
    );
}

#[test]
fn every_point_of_a_sweep_is_a_row_and_has_its_reasons() {
    let report = fixture::report();
    let folder = Folder::of(&report, "settings");
    let (table, reasons) = (folder.table("settings.parquet"), folder.table("reasons.parquet"));
    assert_eq!(table.num_rows(), 1 + 20);
    assert_eq!(counts(&table, "row"), (0..21).collect::<Vec<_>>());
    let chosen = table["is_chosen"].as_boolean();
    assert!(chosen.value(0) && chosen.iter().skip(1).all(|flag| flag == Some(false)));
    assert_eq!(texts(&table, "set_max_segments"), vec!["64"; 21]);
    assert_eq!(counts(&table, "eliminated")[..2], [812_345, 300_000]);
    let hold = &report.outcome.hold_ns;
    assert_eq!(counts(&table, "p99_hold_ns")[0], hold.p99);
    let mean = table["mean_hold_ns"].as_primitive::<Float64Type>().value(0);
    assert!((mean - hold.mean).abs() < 1e-9);
    let each = report.outcome.bypassed.len() + report.outcome.flushed.len();
    assert_eq!(reasons.num_rows(), 21 * each);
    assert_eq!(texts(&reasons, "reason")[0], report.outcome.bypassed[0].reason);
    assert_eq!(counts(&reasons, "times")[each - 1], report.outcome.flushed.last().unwrap().count);
}

#[test]
fn of_nothing_there_are_tables_without_rows() {
    let folder = Folder::of(&Report::default(), "empty");
    assert_eq!(folder.table("flows.parquet").num_rows(), 0);
    assert_eq!(folder.table("settings.parquet").num_rows(), 1);
    assert_eq!(folder.table("reasons.parquet").num_rows(), 0);
}

#[test]
fn columns_are_the_same_whatever_is_in_them() {
    let empty = Folder::of(&Report::default(), "none").table("flows.parquet");
    let full = Folder::of(&fixture::report(), "some").table("flows.parquet");
    assert_eq!(empty.schema().fields(), full.schema().fields());
}

#[test]
fn nothing_unfinished_is_left_and_a_failure_names_the_file() {
    let folder = Folder::of(&fixture::report(), "whole");
    let mut names: Vec<_> = fs::read_dir(folder.0.join("deeper"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["flows.parquet", "reasons.parquet", "settings.parquet"]);
    let file = folder.0.join("deeper/flows.parquet");
    let error = rxo_trace::parquet::write(&Report::default(), &file).unwrap_err().to_string();
    assert!(error.contains("flows.parquet"), "{error}");
}
