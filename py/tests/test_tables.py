"""Tables without and with other packages, and as files."""

import builtins
import datetime

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pytest

import rxo
import traffic

TABLES = ["flows", "histograms", "reasons", "settings", "sources"]


@pytest.fixture(scope="module")
def study(capture):
    return rxo.analyze(capture, sweep="flows=1,2")


def test_columns_rows_and_slices_need_no_other_package(study):
    flows = study.flows()
    assert flows["packets"] == [160, 160]
    assert flows["vlan"] == [None, None]
    first = datetime.datetime.fromtimestamp(traffic.START_S, datetime.timezone.utc)
    assert flows[0]["first_at"] == first
    assert flows[-1] == flows[1]
    assert [flow["source_port"] for flow in flows] == flows["source_port"]
    assert len(flows[:1]) == 1 and flows[1:][0] == flows[1]
    assert flows[5:]["packets"] == []


def test_a_column_has_the_values_that_arrow_has(study):
    for name in TABLES:
        table = getattr(study, name)()
        expected = pyarrow.table(table)
        for column in table.column_names:
            if not pyarrow.types.is_timestamp(expected.schema.field(column).type):
                assert table[column] == expected[column].to_pylist(), f"{name}.{column}"


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [("packet", KeyError, "no column .*packets"), (2, IndexError, "row 2 of 2"), (slice(0, 2, 2), ValueError, "step 1")],
)
def test_what_is_not_there_is_named(study, key, kind, message):
    with pytest.raises(kind, match=message):
        study.flows()[key]


def test_others_take_tables(study):
    flows = study.flows()
    assert flows.to_pandas()["packets"].tolist() == [160, 160]
    assert isinstance(flows.to_pandas(), pandas.DataFrame)
    assert flows.__dataframe__().num_rows() == 2
    assert polars.DataFrame(flows)["packets"].to_list() == [160, 160]
    arrow = pyarrow.table(flows)
    assert duckdb.sql("select sum(packets) from arrow").fetchall() == [(320,)]
    assert arrow.num_rows == 2


def test_a_missing_package_is_named_with_the_remedy(study, monkeypatch):
    known = builtins.__import__

    def without(name, *arguments):
        if name == "pyarrow":
            raise ImportError(name)
        return known(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="to_pandas needs pyarrow: pip install pyarrow pandas"):
        study.flows().to_pandas()


def test_a_notebook_shows_the_first_rows(study):
    shown = study.flows()._repr_html_()
    assert "<th>source_address</th>" in shown and ">10.0.0.1</td>" in shown
    assert shown.count("<tr>") == 3 and "2 rows" in shown
    assert "the first 10 of" in study.histograms()._repr_html_()


def test_every_folder_of_parquet_is_a_data_set(study, tmp_path):
    study.parquet(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == TABLES
    for name in TABLES:
        rows, folder = len(getattr(study, name)()), tmp_path / name
        assert pyarrow.dataset.dataset(folder).count_rows() == rows
        assert len(pandas.read_parquet(folder)) == rows
        assert len(polars.read_parquet(f"{folder}/")) == rows
        assert duckdb.sql(f"select count(*) from '{folder}/*.parquet'").fetchall() == [(rows,)]
