//! Checks that the headers in `include` match the sources. `RXO_UPDATE=1 cargo test -p rxo-capi` regenerates them.

use std::error::Error;
use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config};

/// The sources of `rxo.h`, in the order in which their declarations appear in it. A `mod.rs` brings its modules.
const SOURCES: [&str; 4] =
    ["src/border.rs", "src/engine/mod.rs", "src/segmenter.rs", "src/vnet.rs"];

const MOST_LINES: usize = 260;

/// The comment at the head of `rxo-trace.h`.
const TRACE_COMMENT: &str = "/*
 * librxo-trace: studies of captures. Generated from the sources by cbindgen; do not edit.
 *
 * It has all of librxo: link a program to one of them, not to both.
 */";

#[test]
fn the_headers_are_what_the_sources_say() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(here.join("cbindgen.toml"))?;
    compare("rxo.h", config.clone(), &SOURCES)?;
    let trace = Config {
        header: Some(TRACE_COMMENT.to_owned()),
        include_guard: Some("RXO_TRACE_H".to_owned()),
        sys_includes: vec!["rxo.h".to_owned()],
        ..config
    };
    compare("rxo-trace.h", trace, &["src/study.rs"])
}

/// Compares `include/name` with what cbindgen makes of `sources`.
fn compare(name: &str, config: Config, sources: &[&str]) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let builder = Builder::new().with_config(config);
    let builder = sources.iter().fold(builder, |all, source| all.with_src(here.join(source)));
    let mut bytes = Vec::new();
    builder.generate()?.write(&mut bytes);
    let header = for_c(&String::from_utf8(bytes)?);
    let path = here.join("include").join(name);
    if std::env::var_os("RXO_UPDATE").is_some() {
        fs::write(&path, &header)?;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == header, "{name} is old: `RXO_UPDATE=1 cargo test -p rxo-capi` writes it");
    let lines = header.lines().count();
    assert!(lines <= MOST_LINES, "{name} has {lines} lines");
    Ok(())
}

/// Removes the safety sections, because in C every call is unsafe, and empty lines between constants.
fn for_c(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut is_safety = false;
    for line in header.lines().map(str::trim_end) {
        is_safety = line == "// # Safety" || is_safety && line.starts_with("//");
        if line == "// # Safety" {
            // Remove the empty line before the section.
            lines.pop();
        }
        let is_between =
            line.is_empty() && lines.last().is_some_and(|last| last.starts_with("#define RXO_"));
        if !is_safety && !is_between {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
