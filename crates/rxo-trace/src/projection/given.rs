//! Costs that a user specifies: as text, or as JSON from a file that a calibration has saved.

use std::fs;

use serde::{Deserialize, Serialize};

use super::costs::{ASSUMED_FROM, Costs, CostsError};

/// Costs of receiving, and their origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Given {
    /// The costs of receiving through rxo, in nanoseconds per packet and per byte.
    pub costs: Costs,
    /// The costs of receiving by the host's kernel alone, which `rxo analyze --live` predicts from. Costs that are given as
    /// one set are both. `None` if a calibration has not measured them.
    pub host: Option<Costs>,
    /// The origin of the costs, as reports name it.
    pub from: String,
}

/// The content of a file that `rxo calibrate --save` wrote. Other fields of the file are ignored.
#[derive(Deserialize)]
struct Saved {
    costs: Costs,
    host: Option<Costs>,
    machine: Option<Machine>,
    from: Option<String>,
}

#[derive(Deserialize)]
struct Machine {
    cpu: String,
}

impl Given {
    /// Returns one set of costs as those of rxo and of the kernel. `from` is the origin of the costs.
    #[must_use]
    pub fn one(costs: Costs, from: &str) -> Self {
        Self { costs, host: Some(costs), from: from.to_owned() }
    }

    /// Returns the costs of [`Costs::ASSUMED`], for use without a measurement.
    #[must_use]
    pub fn assumed() -> Self {
        Self::one(Costs::ASSUMED, ASSUMED_FROM)
    }

    /// Returns the costs of the host's kernel; those of rxo if the kernel's are unknown.
    #[must_use]
    pub fn host_costs(&self) -> Costs {
        self.host.unwrap_or(self.costs)
    }

    /// Returns the costs that `text` states. Text with `=` is read as costs, unless a file has that name; other text is
    /// the path of a saved calibration. `origin` is the origin of costs that stand in the text.
    ///
    /// # Errors
    /// If `text` is invalid, or the file cannot be read; the message begins with `text`.
    pub fn read(text: &str, origin: &str) -> Result<Self, CostsError> {
        let named = |error: &dyn std::fmt::Display| CostsError(format!("{text}: {error}"));
        if text.contains('=') && fs::metadata(text).is_err() {
            let costs = text.parse().map_err(|error: CostsError| named(&error))?;
            return Ok(Self::one(costs, origin));
        }
        let content = fs::read_to_string(text).map_err(|error| {
            named(&format!(
                "{error}; name a file of `rxo calibrate --save FILE`, or write \
                 packet=800ns,byte=0.3ns,coalesce=30ns"
            ))
        })?;
        let saved: Saved = serde_json::from_str(&content).map_err(|error| {
            named(&format!("not a file of `rxo calibrate --save FILE`: {error}"))
        })?;
        saved.given(|cpu| format!("measured on {cpu}, {text}")).map_err(|error| named(&error))
    }

    /// Returns the costs that the JSON object `text` contains: the content of a saved calibration, or [`Costs`]
    /// alone, such as `{"packet_ns": 800, "byte_ns": 0.3, "coalesce_ns": 30}`. `origin` becomes the origin of
    /// [`Costs`] alone, which have none.
    ///
    /// # Errors
    /// If `text` is not such an object, or a cost is out of range.
    ///
    /// # Examples
    /// ```
    /// use rxo_trace::projection::Given;
    ///
    /// let given = Given::from_json(r#"{"packet_ns": 800, "byte_ns": 0.3, "coalesce_ns": 30}"#, "by hand")?;
    /// assert_eq!((given.costs.packet_ns, given.from.as_str()), (800.0, "by hand"));
    /// # Ok::<(), rxo_trace::projection::CostsError>(())
    /// ```
    pub fn from_json(text: &str, origin: &str) -> Result<Self, CostsError> {
        let unreadable = |error: serde_json::Error| CostsError(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(unreadable)?;
        if value.get("costs").is_none() {
            let costs: Costs = serde_json::from_value(value).map_err(unreadable)?;
            return Ok(Self::one(costs.checked()?, origin));
        }
        let saved: Saved = serde_json::from_value(value).map_err(unreadable)?;
        saved.given(|cpu| format!("measured on {cpu}"))
    }
}

impl Saved {
    /// Returns the saved costs with their origin, if the costs are valid. If the calibration contains no
    /// origin, `measured_on` creates it from the name of the processor.
    fn given(self, measured_on: impl Fn(&str) -> String) -> Result<Given, CostsError> {
        let cpu = self.machine.map_or("an unknown machine".to_owned(), |machine| machine.cpu);
        let from = self.from.unwrap_or_else(|| measured_on(&cpu));
        let host = self.host.map(Costs::checked).transpose()?;
        Ok(Given { costs: self.costs.checked()?, host, from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: &str = r#"{"costs":{"packet_ns":900,"byte_ns":0.2,"coalesce_ns":20,"device_ns":50},
                                  "machine":{"cpu":"A Processor","cores":2}}"#;

    #[test]
    fn costs_are_text_or_a_file_or_json() {
        let given = Given::read("packet=800ns,byte=0.3ns,coalesce=30ns", "by hand").unwrap();
        assert_eq!((given.costs.packet_ns, given.from.as_str()), (800.0, "by hand"));
        let path = std::env::temp_dir().join(format!("rxo-given-{}.json", std::process::id()));
        fs::write(&path, CALIBRATION).unwrap();
        let read = Given::read(path.to_str().unwrap(), "by hand");
        fs::remove_file(&path).unwrap();
        let read = read.unwrap();
        assert_eq!(read.costs.device_ns, 50.0);
        assert!(read.from.starts_with("measured on A Processor, "), "{}", read.from);
        let loaded = Given::from_json(CALIBRATION, "by hand").unwrap();
        assert_eq!((loaded.costs, loaded.from.as_str()), (read.costs, "measured on A Processor"));
    }

    #[test]
    fn what_was_given_comes_back_from_its_json() {
        let own = Costs { packet_ns: 500.0, ..Costs::ASSUMED };
        for host in [Some(own), None] {
            let given = Given { costs: Costs::ASSUMED, host, from: "by hand".to_owned() };
            let json = serde_json::to_string(&given).unwrap();
            assert_eq!(Given::from_json(&json, "").unwrap(), given);
        }
    }

    #[test]
    fn a_file_has_the_kernels_costs_and_an_older_one_has_not() {
        let older = Given::from_json(CALIBRATION, "").unwrap();
        assert_eq!((older.host, older.host_costs()), (None, older.costs));
        let host = r#","host":{"packet_ns":400,"byte_ns":0.1,"coalesce_ns":0,"wake_ns":7000}}"#;
        let newer = format!("{}{host}", CALIBRATION.strip_suffix('}').unwrap());
        let newer = Given::from_json(&newer, "").unwrap();
        assert_eq!((newer.host_costs().packet_ns, newer.costs.packet_ns), (400.0, 900.0));
        assert_eq!((newer.host_costs().wake_ns, newer.host_costs().cold_ns), (7_000.0, 0.0));
        let one = Given::read("packet=800ns,byte=0.3ns", "by hand").unwrap();
        assert_eq!(one.host, Some(one.costs), "costs that are typed are both");
        let one = Given::from_json(r#"{"packet_ns":800,"byte_ns":0.3,"coalesce_ns":30}"#, "");
        let one = one.unwrap();
        assert_eq!(one.host, Some(one.costs));
        let wrong = CALIBRATION
            .replace("\"machine\"", r#""host":{"packet_ns":-1,"byte_ns":0,"coalesce_ns":0},"m""#);
        let said = Given::from_json(&wrong, "").unwrap_err().to_string();
        assert!(said.contains("packet=-1ns: choose 0ns to 1s"), "{said}");
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            (r#"{"packet": 800}"#, "missing field `packet_ns`"),
            (r#"{"packet_ns":-1,"byte_ns":0.2,"coalesce_ns":20}"#, "choose 0ns to 1s"),
            (r#"{"costs":{"packet_ns":"fast"}}"#, "invalid type"),
            ("fast", "expected"),
        ];
        for (text, part) in rows {
            let said = Given::from_json(text, "").unwrap_err().to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
        let absent = Given::read("no-such-file.json", "").unwrap_err().to_string();
        assert!(absent.starts_with("no-such-file.json: "), "{absent}");
        assert!(absent.contains("rxo calibrate --save FILE"), "{absent}");
    }
}
