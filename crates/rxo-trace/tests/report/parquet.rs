//! The Parquet tables, read back.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use rxo_trace::report::{FlowReport, Report};

use crate::fixture;

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn of(report: &Report, name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-parquet-{name}-{}", std::process::id()));
        rxo_trace::parquet::write(report, &path.join("deeper")).unwrap();
        Self(path)
    }

    fn table(&self, name: &str) -> Read {
        read(&self.0.join("deeper").join(name).join("part-0.parquet"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// A table that was read completely.
struct Read {
    file: SerializedFileReader<File>,
    rows: Vec<Row>,
}

fn read(path: &Path) -> Read {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap().collect::<Result<_, _>>().unwrap();
    Read { file, rows }
}

impl Read {
    fn column(&self, name: &str) -> impl Iterator<Item = &Field> {
        self.rows.iter().map(move |row| {
            row.get_column_iter().find(|(column, _)| *column == name).expect("the column").1
        })
    }

    fn counts(&self, name: &str) -> Vec<u64> {
        let value = |field: &Field| match field {
            Field::ULong(value) => *value,
            other => panic!("{name}: {other:?}"),
        };
        self.column(name).map(value).collect()
    }

    fn smalls(&self, name: &str) -> Vec<u16> {
        let value = |field: &Field| match field {
            Field::UShort(value) => *value,
            other => panic!("{name}: {other:?}"),
        };
        self.column(name).map(value).collect()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let value = |field: &Field| match field {
            Field::Str(value) => value.clone(),
            other => panic!("{name}: {other:?}"),
        };
        self.column(name).map(value).collect()
    }

    /// Returns the stored values of a column of instants. The row interface does not return nanoseconds.
    fn instants(&self, name: &str) -> Vec<i64> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter();
        let place = columns.clone().position(|column| column.name() == name).unwrap();
        let logical = schema.column(place).logical_type_ref().cloned();
        assert_eq!(logical, Some(LogicalType::timestamp(true, TimeUnit::NANOS)));
        let group = self.file.get_row_group(0).unwrap();
        let ColumnReader::Int64ColumnReader(mut reader) = group.get_column_reader(place).unwrap()
        else {
            panic!("{name} is not stored in 64 bits")
        };
        let mut values = Vec::new();
        reader.read_records(self.rows.len(), None, None, &mut values).unwrap();
        values
    }

    /// Returns names and types of the columns, as text.
    fn schema(&self) -> String {
        format!("{:?}", self.file.metadata().file_metadata().schema())
    }
}

#[test]
fn every_flow_comes_back_as_it_was() {
    let report = fixture::report();
    let folder = Folder::of(&report, "flows");
    let table = folder.table("flows");
    let flows = &report.flows;
    let sides = table.texts("source_address").into_iter().zip(table.smalls("source_port"));
    assert_eq!(
        sides.map(|(address, port)| format!("{address}:{port}")).collect::<Vec<_>>(),
        flows.iter().map(|flow| flow.source.clone()).collect::<Vec<_>>()
    );
    assert_eq!(
        table.counts("payload_bytes"),
        flows.iter().map(|flow| flow.payload_bytes).collect::<Vec<_>>()
    );
    let vlans: Vec<_> = table.column("vlan").cloned().collect();
    assert_eq!(vlans[..2], [Field::Null, Field::UShort(8)]);
    assert_eq!(table.texts("protocol")[2..4], ["tcp", "udp"]);
    let started_at = 1_795_253_385_123_456_789;
    let first_at = flows.iter().map(|flow| started_at + flow.first_ns.cast_signed());
    assert_eq!(table.instants("first_at"), first_at.collect::<Vec<_>>());
}

#[test]
fn the_largest_numbers_stay_what_they_are() {
    let mut report = fixture::report();
    report.flows[0].bytes = u64::MAX;
    report.flows[0].last_ns = u64::MAX;
    let table = Folder::of(&report, "large").table("flows");
    assert_eq!(table.counts("wire_bytes")[0], u64::MAX);
    assert_eq!(table.instants("last_at")[0], i64::MAX);
}

#[test]
fn every_point_of_a_sweep_is_a_row_and_has_its_reasons() {
    let report = fixture::report();
    let folder = Folder::of(&report, "settings");
    let (table, reasons) = (folder.table("settings"), folder.table("reasons"));
    assert_eq!(table.counts("row"), (0..21).collect::<Vec<_>>());
    let chosen: Vec<_> = table.column("is_chosen").collect();
    assert_eq!(*chosen[0], Field::Bool(true));
    assert!(chosen[1..].iter().all(|flag| **flag == Field::Bool(false)));
    assert_eq!(table.counts("set_max_segments"), vec![64; 21]);
    assert_eq!(table.counts("eliminated")[..2], [812_345, 300_000]);
    let hold = &report.outcome.hold_ns;
    assert_eq!(table.counts("p99_hold_ns")[0], hold.p99);
    assert_eq!(*table.column("mean_hold_ns").next().unwrap(), Field::Double(hold.mean));
    let each = report.outcome.bypassed.len() + report.outcome.flushed.len();
    assert_eq!(reasons.rows.len(), 21 * each);
    assert_eq!(reasons.texts("reason")[0], report.outcome.bypassed[0].reason);
    assert_eq!(reasons.counts("times")[each - 1], report.outcome.flushed.last().unwrap().count);
}

#[test]
fn many_flows_come_in_parts_and_in_order() {
    let mut report = fixture::report();
    let flow = report.flows[0].clone();
    report.flows = (0..150_000).map(|packets| FlowReport { packets, ..flow.clone() }).collect();
    let table = Folder::of(&report, "many").table("flows");
    assert_eq!(table.counts("packets"), (0..150_000).collect::<Vec<_>>());
    assert_eq!(table.file.metadata().num_row_groups(), 3);
}

#[test]
fn of_nothing_there_are_tables_without_rows() {
    let folder = Folder::of(&Report::default(), "empty");
    let rows = |name| folder.table(name).rows.len();
    assert_eq!(rows("flows"), 0);
    assert_eq!(rows("settings"), 1);
    assert_eq!(rows("reasons"), 0);
}

#[test]
fn columns_are_the_same_whatever_is_in_them() {
    let empty = Folder::of(&Report::default(), "none").table("flows");
    let full = Folder::of(&fixture::report(), "some").table("flows");
    assert_eq!(empty.schema(), full.schema());
}

#[test]
fn nothing_unfinished_is_left_and_a_failure_names_the_file() {
    let folder = Folder::of(&fixture::report(), "whole");
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let tables = names(&folder.0.join("deeper"));
    let expected = ["flows", "histograms", "reasons", "settings", "sources"];
    assert!(tables.iter().eq(&expected), "{tables:?}");
    for table in tables {
        let files = names(&folder.0.join("deeper").join(&table));
        assert!(files.iter().eq(["part-0.parquet"]), "{table}: {files:?}");
    }
    let file = folder.0.join("deeper/flows/part-0.parquet");
    let error = rxo_trace::parquet::write(&Report::default(), &file).unwrap_err().to_string();
    assert!(error.contains("part-0.parquet"), "{error}");
}
