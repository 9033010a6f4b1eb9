//! Costs that a user specifies: as text, or as JSON from a file that a calibration has saved.

use std::fs;

use serde::{Deserialize, Serialize};

use super::costs::{Costs, CostsError};

/// Costs of receiving, and their origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Given {
    /// The costs of receiving, in nanoseconds per packet and per byte.
    pub costs: Costs,
    /// The origin of the costs, as printed in reports (for example "assumed").
    pub from: String,
}

/// The content of a file that `rxo calibrate --save` wrote. Other fields of the file are ignored.
#[derive(Deserialize)]
struct Saved {
    costs: Costs,
    machine: Option<Machine>,
    from: Option<String>,
}

#[derive(Deserialize)]
struct Machine {
    cpu: String,
}

impl Given {
    /// Returns the costs that `text` specifies. If `text` contains `=` and is not the name of a file, it is
    /// parsed as costs. Otherwise `text` is the path of a saved calibration. `origin` becomes the origin of
    /// costs that are parsed from `text`.
    ///
    /// # Errors
    /// If `text` is invalid, or the file cannot be read; the message begins with `text`.
    pub fn read(text: &str, origin: &str) -> Result<Self, CostsError> {
        let named = |error: &dyn std::fmt::Display| CostsError(format!("{text}: {error}"));
        if text.contains('=') && fs::metadata(text).is_err() {
            let costs = text.parse().map_err(|error: CostsError| named(&error))?;
            return Ok(Self { costs, from: origin.to_owned() });
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
            return Ok(Self { costs: costs.checked()?, from: origin.to_owned() });
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
        Ok(Given { costs: self.costs.checked()?, from })
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
        let given = Given { costs: Costs::ASSUMED, from: "by hand".to_owned() };
        let json = serde_json::to_string(&given).unwrap();
        assert_eq!(Given::from_json(&json, "").unwrap(), given);
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
