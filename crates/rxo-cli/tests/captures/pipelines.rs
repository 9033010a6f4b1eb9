//! Names that are not UTF-8, standard output, pipes and devices, as shells use them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Output};

use crate::world::{Folder, mixed, pcap};

/// Runs a shell line in which `rxo` is the command; it must exit with `code`. Returns standard output, and
/// standard error as text.
fn shell(folder: &Folder, line: &str, code: i32) -> (Vec<u8>, String) {
    let rxo = env!("CARGO_BIN_EXE_rxo");
    let script = format!("set -o pipefail; rxo() {{ '{rxo}' \"$@\"; }}; {line}");
    let mut command = Command::new("bash");
    let Output { status, stdout, stderr } =
        command.args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{line}: {said}");
    (stdout, said)
}

#[test]
fn a_pipeline_gives_the_capture_back() {
    let folder = Folder::new("pipeline");
    let file = pcap(&mixed(2, 40));
    folder.write("in.pcap", &file);
    let (printed, said) = shell(&folder, "rxo coalesce in.pcap - | rxo expand - -", 0);
    assert!(printed == file, "nothing but the capture is printed");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        said.contains("-: ") && said.contains("became") && said.contains("given back"),
        "{said}"
    );
    let (printed, said) = shell(&folder, "cat in.pcap | rxo coalesce - - --json > co.pcapng", 0);
    assert!(printed.is_empty() && said.contains("\"output\": \"-\""), "{said}");
    // The same pipe by another name: the summary must not be printed into it.
    let (printed, _) = shell(&folder, "rxo expand co.pcapng /dev/stdout | cat", 0);
    assert!(printed == file, "{} bytes of {}", printed.len(), file.len());
    let (printed, _) = shell(&folder, "rxo verify in.pcap - < co.pcapng", 0);
    assert!(String::from_utf8(printed).unwrap().contains("say the same"));
    // A reader that closes early is no failure, and one line describes a changed capture.
    shell(&folder, "rxo expand co.pcapng - 2>&1 | head -c 100", 0);
    let (printed, said) = shell(&folder, "head -c 3000 co.pcapng | rxo expand - -", 3);
    assert!(file.starts_with(&printed) && said.contains("- ends too early at byte"), "{said}");
}

#[test]
fn a_capture_is_not_written_over_itself() {
    let folder = Folder::new("itself");
    let file = pcap(&mixed(1, 5));
    folder.write("in.pcap", &file);
    let (_, said) = shell(&folder, "rxo coalesce in.pcap - >> in.pcap", 2);
    assert!(said.contains("- is the same file as in.pcap"), "{said}");
    assert!(folder.read("in.pcap") == file);
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    let folder = Folder::new("devices");
    let file = pcap(&mixed(2, 40));
    folder.write("in.pcap", &file);
    folder.rxo("coalesce in.pcap co.pcapng", 0);
    for line in ["coalesce in.pcap /dev/null", "expand co.pcapng /dev/null"] {
        let (text, _) = folder.rxo(line, 0);
        assert!(text.starts_with("/dev/null: "), "{text}");
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    // Two programs print here in any order, so each has its own output.
    let line = "mkfifo pipe && (rxo expand co.pcapng pipe > text & cat pipe; wait $!)";
    let (printed, _) = shell(&folder, line, 0);
    assert!(printed == file, "{} bytes of {}", printed.len(), file.len());
    assert!(folder.read("text").starts_with(b"pipe: "));
    assert!(fs::metadata(folder.0.join("pipe")).unwrap().file_type().is_fifo());
    let (_, said) = folder.rxo("coalesce in.pcap /dev/full", 1);
    assert!(said.contains("/dev/full cannot be written"), "{said}");
}

#[test]
fn names_may_be_any_bytes() {
    let folder = Folder::new("bytes");
    let file = pcap(&mixed(1, 40));
    let [input, coalesced, back] =
        [&b"in\xff.pcap"[..], b"co\xfe\n.pcapng", b"\xc3(.pcap"].map(OsStr::from_bytes);
    fs::write(folder.0.join(input), &file).unwrap();
    let run = |arguments: &[&OsStr]| {
        let output = folder.command("").args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
    };
    run(&["coalesce".as_ref(), input, coalesced]);
    run(&["expand".as_ref(), coalesced, back]);
    assert!(fs::read(folder.0.join(back)).unwrap() == file);
    run(&["verify".as_ref(), input, coalesced, "--json".as_ref()]);
    run(&["analyze".as_ref(), input, "--no-advice".as_ref()]);
    let output = folder.command("expand").args([input, back]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
}
