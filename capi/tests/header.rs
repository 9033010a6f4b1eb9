//! Checks that `include/rxo.h` matches the sources. `RXO_UPDATE=1 cargo test -p rxo-capi` regenerates it.

use std::fs;
use std::path::Path;

/// The sources in the order in which their declarations appear in the header.
const SOURCES: [&str; 6] = [
    "src/border.rs",
    "src/engine/hand.rs",
    "src/engine/mod.rs",
    "src/segmenter.rs",
    "src/vnet.rs",
    "src/study.rs",
];

const MOST_LINES: usize = 250;

#[test]
fn the_header_is_what_the_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(here.join(source));
    }
    let mut bytes = Vec::new();
    builder.generate().unwrap().write(&mut bytes);
    let header = for_c(&String::from_utf8(bytes).unwrap());
    let path = here.join("include/rxo.h");
    if std::env::var_os("RXO_UPDATE").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == header,
        "include/rxo.h is old: `RXO_UPDATE=1 cargo test -p rxo-capi` writes it"
    );
    let lines = header.lines().count();
    assert!(lines <= MOST_LINES, "the header has {lines} lines");
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
