//! Parses segments such as `< [ect0] P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`, and ICMP.

use rxo_wire::TcpFlags;

use super::super::lexer::Kind;
use super::super::{Action, Icmp, Mark, Segment, SegmentOption};
use super::{Parser, ScriptError};

impl Parser {
    pub(super) fn packet(&mut self) -> Result<Action, ScriptError> {
        let is_inbound = self.takes('<');
        if !is_inbound {
            self.sign('>')?;
        }
        let ecn = self.mark()?;
        if self.takes_word("icmp") {
            if !is_inbound {
                return Err(self.expected_before("a segment: no ICMP leaves here"));
            }
            return self.icmp().map(Action::Icmp);
        }
        let segment = Segment { ecn, ..self.segment()? };
        Ok(if is_inbound { Action::In(segment) } else { Action::Out(segment) })
    }

    /// Parses an ECN mark such as `[ect0]` or `(ce)`; `None` if none comes next.
    fn mark(&mut self) -> Result<Option<Mark>, ScriptError> {
        let close = match self.peek() {
            Some(Kind::Sign('[')) => ']',
            Some(Kind::Sign('(')) => ')',
            _ => return Ok(None),
        };
        self.at += 1;
        let name = self.word("noecn, ect0, ect1, ect01 or ce")?;
        let mark = match name.as_str() {
            "noecn" => Mark::NotCapable,
            "ect0" => Mark::Capable0,
            "ect1" => Mark::Capable1,
            "ect01" => Mark::Capable,
            "ce" => Mark::Congestion,
            _ => return Err(self.expected_before("noecn, ect0, ect1, ect01 or ce")),
        };
        self.sign(close)?;
        Ok(Some(mark))
    }

    fn segment(&mut self) -> Result<Segment, ScriptError> {
        let flags = self.flags()?;
        let (seq, text_bytes) = self.range()?;
        // As in packetdrill, the number may occur without the flag, and the flag without a number.
        let ack = match self.takes_word("ack") {
            true => Some(self.number("a number")?),
            false => flags.contains(TcpFlags::ACK).then_some(0),
        };
        let window = if self.takes_word("win") { Some(self.number("a window")?) } else { None };
        let urgent = if self.takes_word("urg") { self.number("a pointer")? } else { 0 };
        let options = self.options()?;
        Ok(Segment { ecn: None, flags, seq, text_bytes, ack, window, urgent, options })
    }

    /// Parses flags such as `S`, `SEW`, `F.`, `.`, `-`.
    fn flags(&mut self) -> Result<TcpFlags, ScriptError> {
        if self.takes('-') {
            return Ok(TcpFlags::default());
        }
        let mut flags = TcpFlags::default();
        if let Some(Kind::Word(letters)) = self.peek().cloned() {
            for letter in letters.chars() {
                flags = flags | flag(letter).ok_or_else(|| self.expected("flags (FSRPUEW.)"))?;
            }
            self.at += 1;
            return Ok(if self.takes('.') { flags | TcpFlags::ACK } else { flags });
        }
        self.sign('.').map_err(|_| self.expected("flags (FSRPUEW.)"))?;
        Ok(TcpFlags::ACK)
    }

    /// Parses a sequence range such as `1:1001(1000)`. SYN and FIN do not count.
    fn range(&mut self) -> Result<(u32, u32), ScriptError> {
        let start: u32 = self.number("a sequence number")?;
        self.sign(':')?;
        let end: u32 = self.number("a sequence number")?;
        self.sign('(')?;
        let bytes: u16 = self.number("a length up to 65535")?;
        self.sign(')')?;
        if start.wrapping_add(bytes.into()) != end {
            return Err(
                self.expected_before("a length that leads from the first number to the last")
            );
        }
        Ok((start, bytes.into()))
    }

    /// Parses options such as `<mss 1460,nop>` or `<...>`. Without brackets there are no options.
    fn options(&mut self) -> Result<Option<Vec<SegmentOption>>, ScriptError> {
        // A `<` here cannot begin the next event, because an event begins with its time.
        if !self.takes('<') {
            return Ok(Some(Vec::new()));
        }
        if self.peek() == Some(&Kind::Ellipsis) {
            self.at += 1;
            self.sign('>')?;
            return Ok(None);
        }
        let mut options = vec![self.segment_option()?];
        while self.takes(',') {
            options.push(self.segment_option()?);
        }
        self.sign('>')?;
        Ok(Some(options))
    }

    fn segment_option(&mut self) -> Result<SegmentOption, ScriptError> {
        let name = self.word("an option")?;
        Ok(match name.as_str() {
            "nop" => SegmentOption::Nop,
            "eol" => SegmentOption::End,
            "mss" => SegmentOption::MaximumSegmentSize(self.number("a segment size")?),
            "wscale" => SegmentOption::WindowScale(self.number("a shift")?),
            "sackOK" => SegmentOption::SackPermitted,
            "sack" => SegmentOption::Sack(self.sack_blocks()?),
            "TS" => {
                self.takes_word("val");
                let value = self.number("a timestamp")?;
                self.takes_word("ecr");
                SegmentOption::Timestamp { value, echo: self.number("a timestamp")? }
            }
            _ => return Err(self.expected_before(OPTIONS)),
        })
    }

    fn sack_blocks(&mut self) -> Result<Vec<(u32, u32)>, ScriptError> {
        let mut blocks = Vec::new();
        while let Some(Kind::Integer(_)) = self.peek() {
            let start = self.number("a sequence number")?;
            self.sign(':')?;
            blocks.push((start, self.number("a sequence number")?));
        }
        if blocks.is_empty() || blocks.len() > MOST_BLOCKS {
            return Err(self.expected("one to four blocks"));
        }
        Ok(blocks)
    }

    fn icmp(&mut self) -> Result<Icmp, ScriptError> {
        let kind = self.word("a type of ICMP")?;
        let mut icmp = Icmp { kind, code: None, mtu: None, seq: None };
        if !matches!(self.peek(), Some(Kind::Word(word)) if word == "mtu")
            && let Some(Kind::Word(code)) = self.peek().cloned()
        {
            self.at += 1;
            icmp.code = Some(code);
        }
        if self.takes_word("mtu") {
            icmp.mtu = Some(self.number("an MTU")?);
        }
        if self.takes('[') {
            icmp.seq = Some(self.range()?.0);
            self.sign(']')?;
        }
        Ok(icmp)
    }
}

fn flag(letter: char) -> Option<TcpFlags> {
    Some(match letter {
        'F' => TcpFlags::FIN,
        'S' => TcpFlags::SYN,
        'R' => TcpFlags::RST,
        'P' => TcpFlags::PSH,
        'U' => TcpFlags::URG,
        'E' => TcpFlags::ECE,
        'W' => TcpFlags::CWR,
        _ => return None,
    })
}

const OPTIONS: &str = "nop, eol, mss, wscale, sackOK, sack or TS";
/// Most SACK blocks that fit into a header.
const MOST_BLOCKS: usize = 4;
