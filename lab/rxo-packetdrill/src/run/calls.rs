//! Makes the calls of a script and checks their results.

use rxo_frame::{Duration, Instant};

use super::answers::{MOST_BYTES, check_option, check_ready, check_rest, field, scattered};
use super::wire::pattern_byte;
use super::{Pending, Runner, Wrong};
use crate::abi::{self, Errno, MSG_PEEK};
use crate::machine::{Answer, Fd, OptionValue, Outcome};
use crate::script::{Call, Value};

/// Progress of a blocking call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// `true` if the call was attempted before.
    has_begun: bool,
    /// Bytes written so far by a write.
    written: usize,
    /// Time at which the call ends without success; `None` for never.
    pub(super) deadline: Option<Instant>,
}

impl Progress {
    /// Starts the timeout at the first attempt. A negative timeout never ends.
    fn begin(&mut self, now: Instant, timeout_ms: i32) {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        if !core::mem::replace(&mut self.has_begun, true) {
            self.deadline = timeout.map(|timeout| now + timeout);
        }
    }
}

impl Runner {
    /// Makes `call`. If it blocks, it must return at `until`.
    pub(super) fn call(
        &mut self,
        line: usize,
        call: &Call,
        until: Option<Instant>,
    ) -> Result<(), Wrong> {
        let mut progress = Progress::default();
        let outcome = self.attempt(call, &mut progress)?;
        let opens = !matches!(&outcome, Some(Err(error)) if *error != Errno::EINPROGRESS);
        if opens && matches!(call.name.as_str(), "listen" | "connect") {
            // Later segments belong to a connection that does not exist yet.
            self.flow = None;
        }
        match (outcome, until) {
            (Some(outcome), until) => {
                until.map_or(Ok(()), |until| self.check_return_time(until))?;
                self.check(call, outcome)
            }
            (None, Some(until)) => {
                let call = call.clone();
                let pending = Pending { line, call, until, progress, wrong: None, is_over: false };
                self.pending.push(pending);
                Ok(())
            }
            (None, None) => {
                let expected = "returns at once: the script gives it no `...time`";
                Err(Wrong::new(expected, format!("{} blocks", call.name)))
            }
        }
    }

    /// Attempts a call, for the first time or again after it blocked.
    pub(super) fn attempt(&mut self, call: &Call, so_far: &mut Progress) -> Result<Outcome, Wrong> {
        let arguments = &mut Arguments { call, at: 0 };
        match call.name.as_str() {
            "socket" => {
                let family = if self.is_v6 { abi::AF_INET6 } else { abi::AF_INET };
                let domain = arguments.number_or(family)?;
                let (kind, protocol) = (arguments.number()?, arguments.number()?);
                return Ok(plain(self.machine.make(domain, kind, protocol)));
            }
            "poll" => return self.poll(arguments, so_far),
            _ => {}
        }
        let script_fd = arguments.long()?;
        let fd = self.descriptor(script_fd);
        let machine = &mut self.machine;
        Ok(match call.name.as_str() {
            "listen" => plain(machine.listen(fd, arguments.number()?)),
            "accept" => machine.accept(fd),
            "bind" => plain(self.machine.bind(fd, self.local())),
            "connect" => {
                self.under_test = Some(fd);
                let (to, has_begun) = (self.remote(), so_far.has_begun);
                so_far.has_begun = true;
                self.machine.connect(fd, to, has_begun)
            }
            "recvmsg" | "read" | "recv" | "recvfrom" => {
                let (bytes, flags) = arguments.amount()?;
                machine.read(fd, bytes, flags)
            }
            "sendmsg" | "write" | "send" | "sendto" => {
                let (bytes, flags) = arguments.amount()?;
                let text = self.pattern(script_fd, bytes);
                self.machine.write(fd, &text, flags, &mut so_far.written)
            }
            "close" => plain(machine.close(fd)),
            "shutdown" => plain(machine.shut_down(fd, arguments.number()?)),
            "getsockopt" => Some(machine.get_option(fd, arguments.number()?, arguments.number()?)),
            "setsockopt" => {
                let (level, name) = (arguments.number()?, arguments.number()?);
                plain(machine.set_option(fd, level, name, &arguments.option()?))
            }
            "fcntl" => plain(machine.fcntl(fd, arguments.number()?, arguments.number_or(0)?)),
            "ioctl" => Some(machine.ioctl(fd, arguments.long()? as u64)),
            other => return Err(Wrong::new(KNOWN_CALLS, other)),
        })
    }

    fn poll(
        &mut self,
        arguments: &mut Arguments<'_>,
        so_far: &mut Progress,
    ) -> Result<Outcome, Wrong> {
        let Some(Value::List(list)) = arguments.next() else {
            return Err(Wrong::new("a list of descriptors", "something else"));
        };
        let mut descriptors = Vec::new();
        for entry in list {
            let fd = self.descriptor(field(entry, "fd")?);
            descriptors.push((fd, field(entry, "events")? as i16));
        }
        arguments.skip();
        so_far.begin(self.machine.now(), arguments.number()?);
        Ok(self.machine.poll(&descriptors, so_far.deadline))
    }

    /// Returns the machine's descriptor; one that matches nothing if the script never created it.
    fn descriptor(&self, script_fd: i64) -> Fd {
        self.descriptors.get(&script_fd).copied().unwrap_or(NO_DESCRIPTOR)
    }

    /// Returns the next bytes to write to `script_fd`.
    fn pattern(&self, script_fd: i64, bytes: usize) -> Vec<u8> {
        let begins = self.written.get(&script_fd).copied().unwrap_or(0);
        (0..bytes as u32).map(|at| pattern_byte(begins.wrapping_add(at))).collect()
    }

    /// Compares the outcome of a call with the script, and records descriptors and byte counts for later
    /// calls.
    pub(super) fn check(
        &mut self,
        call: &Call,
        outcome: Result<Answer, Errno>,
    ) -> Result<(), Wrong> {
        let makes_descriptor = matches!(call.name.as_str(), "socket" | "accept");
        let expected = said(call);
        match (&outcome, &call.result) {
            (Ok(answer), Value::Number(script_fd)) if makes_descriptor && *script_fd >= 0 => {
                self.descriptors.insert(*script_fd, answer.value as Fd);
                if call.name == "accept" {
                    self.under_test = Some(answer.value as Fd);
                }
                self.written.remove(script_fd);
                self.read.remove(script_fd);
                return Ok(());
            }
            (Ok(answer), Value::Number(result)) if answer.value == *result => {}
            (Err(error), Value::Number(-1)) if is_error(call, *error) => return Ok(()),
            (_, Value::Any) => {}
            _ => return Err(Wrong::new(expected, given(&outcome))),
        }
        outcome.map_or(Ok(()), |answer| self.check_answer(call, &answer))
    }

    fn check_answer(&mut self, call: &Call, answer: &Answer) -> Result<(), Wrong> {
        let Some(Value::Number(script_fd)) = call.arguments.first() else {
            return check_ready(call, answer);
        };
        match call.name.as_str() {
            "write" | "send" | "sendto" | "sendmsg" => {
                *self.written.entry(*script_fd).or_default() += answer.value as u32;
            }
            "read" | "recv" | "recvfrom" => {
                let peeks = call.arguments.get(3) == Some(&Value::Number(MSG_PEEK.into()));
                return self.check_text(*script_fd, &answer.data, peeks);
            }
            "recvmsg" => {
                check_rest(call.arguments.get(1), answer)?;
                return self.check_text(*script_fd, &answer.data, false);
            }
            "getsockopt" => return check_option(call.arguments.get(3), answer),
            "ioctl" => return check_option(call.arguments.get(2), answer),
            "close" => {
                self.descriptors.remove(script_fd);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_text(&mut self, script_fd: i64, text: &[u8], peeks: bool) -> Result<(), Wrong> {
        let read = self.read.entry(script_fd).or_default();
        let is_pattern = text.iter().zip(*read..).all(|(byte, at)| *byte == pattern_byte(at));
        if !peeks {
            *read += text.len() as u32;
        }
        if is_pattern {
            Ok(())
        } else {
            Err(Wrong::new("the bytes that came in, in order", "others"))
        }
    }
}

/// The arguments of a call, taken one by one.
struct Arguments<'a> {
    call: &'a Call,
    at: usize,
}

impl<'a> Arguments<'a> {
    fn next(&mut self) -> Option<&'a Value> {
        self.at += 1;
        self.call.arguments.get(self.at - 1)
    }

    fn skip(&mut self) {
        self.at += 1;
    }

    fn long(&mut self) -> Result<i64, Wrong> {
        match self.next() {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(self.wrong("a number")),
        }
    }

    fn number(&mut self) -> Result<i32, Wrong> {
        let number = self.long()?;
        i32::try_from(number).map_err(|_| self.wrong("a number of 32 bits"))
    }

    /// Returns the next argument, or `default` if the script has `...` or nothing.
    fn number_or(&mut self, default: i32) -> Result<i32, Wrong> {
        match self.call.arguments.get(self.at) {
            None | Some(Value::Any) => {
                self.at += 1;
                Ok(default)
            }
            _ => self.number(),
        }
    }

    /// Returns the number of bytes that a call reads or writes, and its flags.
    fn amount(&mut self) -> Result<(usize, i32), Wrong> {
        let bytes = if self.call.name.ends_with("msg") {
            scattered(self.next())?
        } else {
            self.skip();
            self.size()?
        };
        let has_flags = !matches!(self.call.name.as_str(), "read" | "write");
        Ok((bytes, if has_flags { self.number()? } else { 0 }))
    }

    fn size(&mut self) -> Result<usize, Wrong> {
        let size = usize::try_from(self.long()?).ok().filter(|size| *size <= MOST_BYTES);
        size.ok_or_else(|| self.wrong("a size of at most 16 MiB"))
    }

    /// Parses an option's value: `[1]`, `"reno"`, `{onoff=1, linger=0}`.
    fn option(&mut self) -> Result<OptionValue, Wrong> {
        let value = self.next();
        let value = match value {
            Some(Value::List(list)) if list.len() == 1 => list.first(),
            other => other,
        };
        match value {
            Some(Value::Number(number)) => Ok(OptionValue::Number(*number as i32)),
            Some(Value::Text(text)) => Ok(OptionValue::Name(text.clone())),
            Some(fields @ Value::Fields(_)) => {
                let (is_on, seconds) = (field(fields, "onoff")?, field(fields, "linger")?);
                Ok(OptionValue::Linger(is_on as i32, seconds as i32))
            }
            _ => Err(self.wrong("an option's value")),
        }
    }

    fn wrong(&self, expected: &str) -> Wrong {
        let got = self.call.arguments.get(self.at.saturating_sub(1));
        Wrong::new(format!("argument {}: {expected}", self.at), format!("{got:?}"))
    }
}

/// Makes the outcome of a call that never blocks and returns only a number.
fn plain(result: Result<i64, Errno>) -> Outcome {
    Some(result.map(Answer::of))
}

fn is_error(call: &Call, error: Errno) -> bool {
    let number = call.error.as_deref().map(abi::symbol);
    number.is_none_or(|number| number == Some(error.0.into()))
}

fn said(call: &Call) -> String {
    let result = match &call.result {
        Value::Number(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    match &call.error {
        Some(error) => format!("{} = {result} {error}", call.name),
        None => format!("{} = {result}", call.name),
    }
}

fn given(outcome: &Result<Answer, Errno>) -> String {
    match outcome {
        Ok(answer) => answer.value.to_string(),
        Err(error) => format!("-1 {error}"),
    }
}

const NO_DESCRIPTOR: Fd = -1;
const KNOWN_CALLS: &str = "socket, bind, listen, accept, connect, read, recv, recvfrom, write, send, \
     sendto, recvmsg, sendmsg, close, shutdown, getsockopt, setsockopt, fcntl, ioctl or poll";
