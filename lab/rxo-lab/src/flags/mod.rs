//! The flags of `rxo-lab`.

mod command;
mod run;
mod soak;
mod trial;

pub(crate) use command::{
    AcksFlags, CastFlags, CastPart, Cli, Command, GallatinFlags, MenonFlags, MenonPart, RscFlags,
};
pub(crate) use run::{CheckFlags, Chosen, Part, RunFlags};
pub(crate) use soak::SoakFlags;
pub(crate) use trial::{AttackFlags, TryFlags};

/// Parses the flags of one command from a line of words.
#[cfg(test)]
pub(crate) fn typed<F: clap::Args>(line: &str) -> Result<F, clap::Error> {
    use clap::Parser;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Typed<F: clap::Args> {
        #[command(flatten)]
        flags: F,
    }
    Typed::try_parse_from(line.split_whitespace()).map(|typed: Typed<F>| typed.flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_menon_has_flags_of_its_own() {
        let part = |line: &str| typed::<MenonFlags>(line).map(|flags| flags.part.is_some());
        assert!(!part("--only limit,profile --quick").unwrap());
        assert!(part("acks --only split --rate 100").unwrap());
        for line in ["--rate 100", "--quick acks"] {
            assert!(part(line).is_err(), "{line}");
        }
    }
}
