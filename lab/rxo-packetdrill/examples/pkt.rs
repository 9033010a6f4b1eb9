//! Runs the named scripts with the project's own runner, and prints the result of each:
//! `cargo run -p rxo-packetdrill --example pkt -- FILE …`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let ended = std::fs::read_to_string(&path)
            .map_err(|error| format!("{path}: {error}"))
            .and_then(|source| run(&path, &source));
        match ended {
            Ok(()) => println!("ok    {path}"),
            Err(why) => {
                println!("FAIL  {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn run(path: &str, source: &str) -> Result<(), String> {
    rxo_packetdrill::run::run(path, source).map_err(|failure| failure.to_string())
}
