//! Formats a segment in the language of scripts, for reports.

use std::fmt;

use rxo_wire::TcpFlags;

use super::{Mark, Segment, SegmentOption};

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mark) = self.ecn {
            write!(f, "[{mark}] ")?;
        }
        let end = self.seq.wrapping_add(self.text_bytes);
        write!(f, "{} {}:{end}({})", letters(self.flags), self.seq, self.text_bytes)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if self.urgent > 0 {
            write!(f, " urg {}", self.urgent)?;
        }
        match &self.options {
            None => f.write_str(" <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCapable => "noecn",
            Self::Capable0 => "ect0",
            Self::Capable1 => "ect1",
            Self::Capable => "ect01",
            Self::Congestion => "ce",
        })
    }
}

impl fmt::Display for SegmentOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::End => f.write_str("eol"),
            Self::MaximumSegmentSize(bytes) => write!(f, "mss {bytes}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            Self::Timestamp { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::Other(kind) => write!(f, "option {kind}"),
        }
    }
}

fn letters(flags: TcpFlags) -> String {
    let letters: String = [
        (TcpFlags::FIN, 'F'),
        (TcpFlags::SYN, 'S'),
        (TcpFlags::RST, 'R'),
        (TcpFlags::PSH, 'P'),
        (TcpFlags::URG, 'U'),
        (TcpFlags::ECE, 'E'),
        (TcpFlags::CWR, 'W'),
        (TcpFlags::ACK, '.'),
    ]
    .iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .map(|(_, letter)| letter)
    .collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}
