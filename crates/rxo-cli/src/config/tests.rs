//! Tests of configuration files: every flag, positions in errors, and the precedence of typed flags.

use clap::{Arg, ArgAction};

use super::*;

/// Parses `rxo run FLAGS` with a configuration file that contains `text`.
fn parsed(flags: &str, text: &str) -> Result<Loaded> {
    let line = format!("rxo run --config rxo.toml {flags}");
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    Source::of(&arguments).expect("it has a file").parse(text)
}

/// Returns the values of all flags without a file.
fn typed_alone(flags: &[String]) -> Settings {
    let line = ["rxo".to_owned(), RUN.to_owned()].into_iter().chain(flags.iter().cloned());
    let matches = Cli::command().try_get_matches_from(line).unwrap();
    settings(matches.subcommand_matches(RUN).unwrap())
}

fn said(flags: &str, text: &str) -> String {
    parsed(flags, text).unwrap_err().to_string()
}

const DEVICES: &str = "nic = \"packet:eth1\"\nhost = \"tap:rxo0\"\n";

/// Returns a value that the flag's parser accepts and that is not its default.
fn value(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let is_default = |name: &str| arg.get_default_values().iter().any(|value| value == name);
    let mut names = possible.iter().map(|value| value.get_name().to_owned());
    names.find(|name| !is_default(name)).unwrap_or_else(|| "7s".to_owned())
}

/// Each flag of `rxo run` can be set in the file, with the same meaning as on the command line.
#[test]
fn every_flag_can_stand_in_the_file() {
    let run = run();
    let flags = run.get_arguments().filter_map(|arg| Some((arg, arg.get_long()?)));
    let flags: Vec<_> = flags.filter(|(_, long)| !file::NOT_IN_FILES.contains(long)).collect();
    assert!(flags.len() >= 24, "{}", flags.len());
    for (arg, long) in flags {
        let value = value(arg);
        let (line, typed) = match arg.get_action() {
            ArgAction::SetTrue => (format!("{long} = true"), vec![format!("--{long}")]),
            ArgAction::Append => {
                let typed = [format!("--{long}={value}"), format!("--{long}=b")];
                (format!("{long} = [\"{value}\", \"b\"]"), typed.to_vec())
            }
            ArgAction::Set => (format!("{long} = \"{value}\""), vec![format!("--{long}={value}")]),
            other => panic!("{long}: files have no {other:?}"),
        };
        // The other flags of the line: those that this flag needs, without those with which it conflicts.
        let needed = [("control", "/c"), ("memory", "2G")];
        let mut beside = vec![("nic", "packet:eth1"), ("host", "tap:rxo0")];
        beside.extend(needed);
        let conflicts = run.get_arg_conflicts_with(arg);
        let is_free = |name: &&str| !conflicts.iter().any(|other| other.get_long() == Some(name));
        beside.retain(|(name, _)| *name != long && is_free(name));
        let file = beside.iter().map(|(name, value)| format!("{name} = \"{value}\"\n"));
        let file = file.collect::<String>() + &line;
        let others = beside.iter().map(|(name, value)| format!("--{name}={value}"));
        let typed: Vec<_> = others.chain(typed).collect();
        let loaded = parsed("", &file).unwrap_or_else(|error| panic!("{long}: {error}"));
        assert_eq!(loaded.settings, typed_alone(&typed), "{long}");
        let default = typed_alone(&["--nic=a".to_owned(), "--host=b".to_owned()]);
        assert_ne!(loaded.settings.get(long), default.get(long), "{long} says nothing");
    }
}

#[test]
fn false_and_numbers_are_as_typed() {
    let text = format!("{DEVICES}take-over = false\nack-split = 2\nset = \"flows=8\"\n");
    let RunFlags { take_over, way, policy, .. } = parsed("", &text).unwrap().flags;
    assert_eq!((take_over, &*way.ack_split, policy.set), (false, "2", vec!["flows=8".to_owned()]));
}

#[test]
fn what_was_typed_wins() {
    let text =
        format!("{DEVICES}hold = \"auto\"\nset = [\"flows=8\", \"psh=keep\"]\njson = true\n");
    let flags = parsed("--hold 50us --set flows=9", &text).unwrap().flags;
    assert_eq!(flags.policy.hold.as_deref(), Some("50us"));
    assert_eq!(flags.policy.set, ["flows=9"], "a list is replaced whole");
    assert!(flags.live.json && flags.nic == "packet:eth1");
    // An entry that conflicts with a typed flag is ignored, so that a unit can use `--restore` with its file.
    let flags = parsed("--restore", &format!("{DEVICES}take-over = true\n")).unwrap().flags;
    assert!(flags.restore && !flags.take_over && flags.host.is_none());
}

#[test]
fn an_error_has_line_and_column_and_the_remedy() {
    let rows = [
        ("hold = 1h", "rxo.toml:3:8: invalid number", "hold = \"auto\""),
        ("hold = auto", "rxo.toml:3:8: ", "quoted string"),
        ("set = [\"flows=8\"", "rxo.toml:4:1: expected a right bracket", "TOML"),
        ("hodl = \"auto\"", "rxo.toml:3:1: there is no flag `hodl`; the nearest is `hold`", ""),
        ("zzzzzz = 1", "rxo.toml:3:1: there is no flag `zzzzzz`; `rxo run --help`", ""),
        ("[policy]\nname = 1", "rxo.toml:3:1: policy: give a text in quotes", ""),
        ("config = \"b.toml\"", "rxo.toml:3:1: config: cannot stand in a file", ""),
        ("json = \"yes\"", "rxo.toml:3:9: json: give true or false", ""),
        ("hold = true", "rxo.toml:3:8: hold: give a text in quotes", ""),
        ("hold = [\"auto\"]", "rxo.toml:3:8: hold: give one value", ""),
        ("set = [1, true]", "rxo.toml:3:7: set: give a list of texts", ""),
        ("hold = \"auto\"\nhold = \"1us\"", "rxo.toml:4:1: duplicate key: `hold`", ""),
        ("  checksum = \"maybe\"", "rxo.toml:3:15: invalid value 'maybe'", "trust, verify"),
        ("restore = true", "rxo.toml:2:9: the argument '--host", "cannot be used with '--restore'"),
        ("confirm = \"60s\"", "rxo.toml: the following required", "--control"),
    ];
    for (line, begin, part) in rows {
        let said = said("", &format!("{DEVICES}{line}\n"));
        assert!(said.starts_with(begin) && said.contains(part), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let said = said("", "host = \"tap:rxo0\"");
    assert!(
        said.starts_with("rxo.toml: the following required") && said.contains("--nic"),
        "{said}"
    );
}

/// An error found by the plan also shows its line in the file; an error of a typed flag shows none.
#[test]
fn an_error_of_the_plan_is_placed() {
    let text =
        format!("{DEVICES}set = [\"flows=8\",\n  \"flöws=0\", \"psh=keep\"]\nhold = \"1h\"\n");
    let loaded = parsed("--stats 1d", &text).unwrap();
    let placed = |line: &str| loaded.locate(usage(line)).to_string();
    assert_eq!(placed("--hold 1h is invalid: a time"), "rxo.toml:5:9: hold: 1h is invalid: a time");
    assert_eq!(placed("--set flöws=0 is invalid"), "rxo.toml:4:4: set: flöws=0 is invalid");
    assert_eq!(placed("--set psh=keep is invalid"), "rxo.toml:4:15: set: psh=keep is invalid");
    assert_eq!(placed("--stats 1d: give a time"), "--stats 1d: give a time");
    let other = loaded.locate(anyhow::anyhow!("--hold cannot be"));
    assert_eq!(other.to_string(), "--hold cannot be", "it is no error of usage");
}

/// The shipped example must parse alone, and with the flags of the service.
#[test]
fn the_example_is_understood() {
    let text = include_str!("../../../../packaging/rxo.toml");
    for flags in ["", "--nic packet:eth1 --host tap:rxo-eth1 --take-over --stats 0s"] {
        let flags = parsed(flags, text).unwrap().flags;
        assert!(flags.take_over && flags.nic == "packet:eth1");
        assert_eq!(crate::rules::policy(&flags.policy).unwrap().max_segments, 64);
    }
}

#[test]
fn only_a_run_with_a_file_has_a_source() {
    let of = |line: &str| {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Source::of(&arguments).map(|source| source.path().display().to_string())
    };
    assert_eq!(of("rxo run --nic packet:eth1 --config a.toml"), Some("a.toml".to_owned()));
    assert_eq!(of("rxo run --config=a.toml"), Some("a.toml".to_owned()));
    assert_eq!(of("rxo run --nic packet:eth1 --host tap:rxo0"), None);
    assert_eq!(of("rxo run --config a.toml --help"), None);
    assert_eq!(of("rxo policies"), None);
}
