//! Writes metric families in the text format of Prometheus.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::series::{Family, Number, Sample};

/// Content type of the text format's version 0.0.4, which every version of Prometheus reads.
pub(super) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Returns `families` in the text format, preceded by a series with the version of rxo and the name of the command.
///
/// # Errors
/// Never returns an error, because writing to a string cannot fail.
pub(super) fn written(
    version: &str,
    command: &str,
    families: Vec<Family>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(vec![build(version, command)])));
    registry.register_collector(Box::new(Snapshot(families)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The series with the version of rxo and the name of the command: its name, its label names and its help text.
pub(super) const BUILD: (&str, [&str; 2], &str) =
    ("rxo_build_info", ["version", "command"], "The version of rxo and the command; always 1");

fn build(version: &str, command: &str) -> Family {
    let (name, names, help) = BUILD;
    let labels = [(names[0], version), (names[1], command)];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let samples = vec![Sample { labels, value: Number::Count(1) }];
    Family { name: name.to_owned(), is_counter: false, help, samples }
}

/// The families of one answer, with their values.
#[derive(Debug)]
struct Snapshot(Vec<Family>);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Family { name, is_counter, help, samples } in &self.0 {
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for Sample { labels, value } in samples {
                let of_labels = metric.encode_family(labels)?;
                value.encode(*is_counter, of_labels)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn encode(self, is_counter: bool, encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self, is_counter) {
            (Self::Count(count), true) => ConstCounter::new(count).encode(encoder),
            (Self::Real(real), true) => ConstCounter::new(real).encode(encoder),
            (Self::Count(count), false) => ConstGauge::new(count).encode(encoder),
            (Self::Real(real), false) => ConstGauge::new(real).encode(encoder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_written_as_prometheus_reads_it() {
        let sample = |labels: &[(&str, &str)], value| Sample {
            labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            value,
        };
        let families = vec![
            Family {
                name: "rxo_bypass".into(),
                is_counter: true,
                help: "Frames",
                samples: vec![
                    sample(&[("reason", "syn")], Number::Count(u64::MAX)),
                    sample(&[("reason", "a\"b\\c\nd")], Number::Count(1)),
                ],
            },
            Family {
                name: "rxo_elapsed_seconds".into(),
                is_counter: false,
                help: "Time",
                samples: vec![sample(&[], Number::Real(1.5))],
            },
        ];
        let text = written("1.2.3", "rxo run", families).unwrap();
        assert_eq!(
            text,
            format!(
                "# HELP rxo_build_info The version of rxo and the command; always 1\n\
                 # TYPE rxo_build_info gauge\n\
                 rxo_build_info{{version=\"1.2.3\",command=\"rxo run\"}} 1\n\
                 # HELP rxo_bypass_total Frames\n# TYPE rxo_bypass_total counter\n\
                 rxo_bypass_total{{reason=\"syn\"}} 18446744073709551615\n\
                 rxo_bypass_total{{reason=\"a\\\"b\\\\c\\nd\"}} 1\n\
                 # HELP rxo_elapsed_seconds Time\n# TYPE rxo_elapsed_seconds gauge\nrxo_elapsed_seconds 1.5\n"
            )
        );
    }
}
