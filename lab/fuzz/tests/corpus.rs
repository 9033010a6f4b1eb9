//! Replays the kept corpus without libFuzzer.

use std::path::PathBuf;

use rxo_fuzz::TARGETS;
use rxo_fuzz::corpus::seeds;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

#[test]
fn every_kept_file_passes() {
    for &(target, run) in TARGETS {
        let mut files = 0;
        for entry in std::fs::read_dir(corpus().join(target)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let result = std::panic::catch_unwind(|| run(&bytes));
            assert!(result.is_ok(), "{}", path.display());
            files += 1;
        }
        assert!(files >= 10, "{target} has {files} files");
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
fn every_target_has_its_entry() {
    for (target, _) in TARGETS {
        let entry = corpus().with_file_name("targets").join(format!("{target}.rs"));
        assert!(entry.exists(), "{}", entry.display());
    }
}
