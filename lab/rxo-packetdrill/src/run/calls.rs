//! Makes the calls of a script and checks their results.

use rxo_frame::Instant;

use super::answers::{
    MOST_BYTES, check_event, check_option, check_ready, check_rest, field, scattered,
};
use super::wire::pattern_byte;
use super::{Pending, Runner, Wrong};
use crate::abi::{self, Errno, MSG_PEEK};
use crate::host::{Answer, Call as HostCall, Fd, OptionValue, Outcome, Progress};
use crate::script::{Call, Value};

impl Runner {
    /// Makes `call`. `until` is when it must return, if it blocks.
    pub(super) fn call(
        &mut self,
        line: usize,
        call: &Call,
        until: Option<Instant>,
    ) -> Result<(), Wrong> {
        let made = self.translated(call)?;
        let progress = self.host.start(made);
        let opens = match &progress {
            Progress::Done(outcome) => {
                !matches!(outcome, Err(error) if *error != Errno::EINPROGRESS)
            }
            Progress::Waits(_) => true,
        };
        if opens && matches!(call.name.as_str(), "listen" | "connect") {
            // What follows belongs to a connection that does not exist yet.
            self.flow = None;
        }
        match (progress, until) {
            (Progress::Done(outcome), until) => {
                until.map_or(Ok(()), |until| self.check_return_time(until))?;
                self.check(call, outcome)
            }
            (Progress::Waits(waiting), Some(until)) => {
                let call = call.clone();
                let pending = Pending { line, call, until, waiting, wrong: None, is_over: false };
                self.pending.push(pending);
                Ok(())
            }
            (Progress::Waits(_), None) => {
                let expected = "returns at once: the script gives it no `...time`";
                Err(Wrong::new(expected, format!("{} blocks", call.name)))
            }
        }
    }

    fn translated(&mut self, call: &Call) -> Result<HostCall, Wrong> {
        let mut arguments = Arguments { call, at: 0 };
        let arguments = &mut arguments;
        if call.name == "socket" {
            let family = if self.is_v6 { abi::AF_INET6 } else { abi::AF_INET };
            let domain = arguments.number_or(family)?;
            let (kind, protocol) = (arguments.number()?, arguments.number()?);
            return Ok(HostCall::Socket { domain, kind, protocol });
        }
        match call.name.as_str() {
            "poll" => return self.poll(arguments),
            "epoll_create" => return Ok(HostCall::EpollCreate),
            "epoll_ctl" => return self.epoll_control(arguments),
            _ => {}
        }
        let script_fd = arguments.long()?;
        let fd = self.descriptor(script_fd)?;
        Ok(match call.name.as_str() {
            "bind" => HostCall::Bind(fd, self.local()),
            "listen" => HostCall::Listen(fd, arguments.number()?),
            "accept" => HostCall::Accept(fd),
            "connect" => {
                self.under_test = Some(fd);
                HostCall::Connect(fd, self.remote())
            }
            "epoll_wait" => {
                arguments.skip();
                HostCall::EpollWait(fd, arguments.size()?, arguments.number()?)
            }
            "recvmsg" => {
                let bytes = scattered(arguments.next())?;
                HostCall::Read(fd, bytes, arguments.number()?)
            }
            "sendmsg" => {
                let bytes = scattered(arguments.next())?;
                HostCall::Write(fd, self.pattern(script_fd, bytes), arguments.number()?)
            }
            "read" | "recv" | "recvfrom" => {
                arguments.skip();
                let bytes = arguments.size()?;
                let flags = if call.name == "read" { 0 } else { arguments.number()? };
                HostCall::Read(fd, bytes, flags)
            }
            "write" | "send" | "sendto" => {
                arguments.skip();
                let bytes = arguments.size()?;
                let flags = if call.name == "write" { 0 } else { arguments.number()? };
                HostCall::Write(fd, self.pattern(script_fd, bytes), flags)
            }
            "close" => HostCall::Close(fd),
            "shutdown" => HostCall::Shutdown(fd, arguments.number()?),
            "getsockopt" => HostCall::GetOption(fd, arguments.number()?, arguments.number()?),
            "setsockopt" => {
                let (level, name) = (arguments.number()?, arguments.number()?);
                HostCall::SetOption(fd, level, name, arguments.option()?)
            }
            "fcntl" => HostCall::Fcntl(fd, arguments.number()?, arguments.number_or(0)?),
            "ioctl" => HostCall::Ioctl(fd, arguments.long()? as u64),
            other => return Err(Wrong::new(KNOWN_CALLS, other)),
        })
    }

    fn poll(&self, arguments: &mut Arguments<'_>) -> Result<HostCall, Wrong> {
        let Some(Value::List(list)) = arguments.next() else {
            return Err(Wrong::new("a list of descriptors", "something else"));
        };
        let mut descriptors = Vec::new();
        for entry in list {
            let fd = self.descriptor(field(entry, "fd")?)?;
            descriptors.push((fd, field(entry, "events")? as i16));
        }
        arguments.skip();
        Ok(HostCall::Poll(descriptors, arguments.number()?))
    }

    /// `epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN, fd=4})`.
    fn epoll_control(&self, arguments: &mut Arguments<'_>) -> Result<HostCall, Wrong> {
        let epoll = self.descriptor(arguments.long()?)?;
        let (operation, fd) = (arguments.number()?, self.descriptor(arguments.long()?)?);
        let (events, data) = match arguments.next() {
            Some(event @ Value::Fields(_)) => (field(event, "events")?, field(event, "fd")?),
            _ => (0, 0),
        };
        Ok(HostCall::EpollControl(epoll, operation, fd, events as u32, data as u64))
    }

    fn descriptor(&self, script_fd: i64) -> Result<Fd, Wrong> {
        // A descriptor that was never created does not exist on the host either.
        Ok(self.descriptors.get(&script_fd).copied().unwrap_or(NO_DESCRIPTOR))
    }

    /// The next bytes to write to `script_fd`.
    fn pattern(&self, script_fd: i64, bytes: usize) -> Vec<u8> {
        let begins = self.written.get(&script_fd).copied().unwrap_or(0);
        (0..bytes as u32).map(|at| pattern_byte(begins.wrapping_add(at))).collect()
    }

    /// Compares the outcome of a call with the script, and keeps what later calls need.
    pub(super) fn check(&mut self, call: &Call, outcome: Outcome) -> Result<(), Wrong> {
        let makes_descriptor = matches!(call.name.as_str(), "socket" | "accept" | "epoll_create");
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
            "epoll_wait" => return check_event(call.arguments.get(1), answer),
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

    /// The next argument, or `default` if the script has `...` or nothing.
    fn number_or(&mut self, default: i32) -> Result<i32, Wrong> {
        match self.call.arguments.get(self.at) {
            None | Some(Value::Any) => {
                self.at += 1;
                Ok(default)
            }
            _ => self.number(),
        }
    }

    fn size(&mut self) -> Result<usize, Wrong> {
        let size = usize::try_from(self.long()?).ok().filter(|size| *size <= MOST_BYTES);
        size.ok_or_else(|| self.wrong("a size of at most 16 MiB"))
    }

    /// Reads an option's value: `[1]`, `"reno"`, `{onoff=1, linger=0}`.
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

fn given(outcome: &Outcome) -> String {
    match outcome {
        Ok(answer) => answer.value.to_string(),
        Err(error) => format!("-1 {error}"),
    }
}

const NO_DESCRIPTOR: Fd = -1;
const KNOWN_CALLS: &str = "socket, bind, listen, accept, connect, read, recv, recvfrom, write, send, \
     sendto, recvmsg, sendmsg, close, shutdown, getsockopt, setsockopt, fcntl, ioctl, poll, epoll_create, \
     epoll_ctl or epoll_wait";
