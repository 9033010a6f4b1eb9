//! Replays the kept corpus without libFuzzer.

use std::path::PathBuf;

use rxo_fuzz::corpus::seeds;
use rxo_fuzz::{TARGETS, target};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

#[test]
fn every_kept_file_passes() {
    for &(name, run) in TARGETS {
        let mut files = 0;
        for entry in std::fs::read_dir(corpus().join(name)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let result = std::panic::catch_unwind(|| run(&bytes));
            assert!(result.is_ok(), "{}", path.display());
            files += 1;
        }
        assert!(files >= 10, "{name} has {files} files");
    }
}

#[test]
fn the_kept_files_are_those_that_are_made() {
    for seed in seeds() {
        let path = corpus().join(seed.target).join(&seed.name);
        let kept = std::fs::read(&path).ok();
        let remedy = "run cargo run -p rxo-fuzz --example make-corpus";
        assert!(kept == Some(seed.bytes), "{} is out of date: {remedy}", path.display());
    }
}

#[test]
fn every_kept_folder_is_that_of_a_target() {
    for entry in std::fs::read_dir(corpus()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        target(&name).unwrap();
    }
}

#[test]
fn every_target_is_found_by_its_name() {
    assert!(TARGETS.iter().all(|(name, _)| target(name).is_ok()));
}

#[test]
fn an_unknown_name_is_answered_with_those_that_exist() {
    for unknown in ["prase", "", "Parse"] {
        let error = target(unknown).unwrap_err();
        let head = format!("no target {unknown:?}; there are: parse, checksum, ");
        assert!(error.starts_with(&head), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(TARGETS.iter().all(|(name, _)| error.contains(name)), "{error}");
    }
}
