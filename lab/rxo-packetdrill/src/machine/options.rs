//! Implements options and flags: getsockopt, setsockopt, fcntl, ioctl.

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, KeepAlive};

use super::info::TcpInfo;
use super::settings::algorithm;
use super::socket::{Kind, Options};
use super::text::MOST_UNREAD_BYTES;
use super::{Answer, Fd, Machine, errno};
use crate::abi::*;

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number, the type of most options.
    Number(i32),
    /// SO_LINGER: on or off, and seconds.
    Linger(i32, i32),
    /// TCP_CONGESTION: the name of an algorithm.
    Name(String),
}

impl Machine {
    /// Implements fcntl(2) with command and argument.
    ///
    /// # Errors
    /// The errors that Linux returns.
    pub fn fcntl(&mut self, fd: Fd, command: i32, argument: i32) -> Result<i64, Errno> {
        let options = &mut self.socket(fd)?.options;
        match command {
            F_GETFL => Ok((O_RDWR | if options.is_nonblocking { O_NONBLOCK } else { 0 }).into()),
            F_SETFL => {
                options.is_nonblocking = argument & O_NONBLOCK != 0;
                Ok(0)
            }
            F_GETFD | F_SETFD => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Implements ioctl(2). All known requests return a number.
    ///
    /// # Errors
    /// The errors that Linux returns.
    pub fn ioctl(&mut self, fd: Fd, request: u64) -> Result<Answer, Errno> {
        if let Kind::Listener(_) = self.socket(fd)?.kind {
            return Err(Errno::EINVAL);
        }
        let stream = self.stream(fd)?;
        let seen = stream.tcp.statistics();
        let bytes = match request {
            SIOCINQ => stream.unread(MOST_UNREAD_BYTES),
            SIOCOUTQ => (seen.unsent + (seen.snd_nxt - seen.snd_una).max(0) as u32) as usize,
            SIOCOUTQNSD => seen.unsent as usize,
            _ => return Err(Errno::EINVAL),
        };
        Ok(number(i32::try_from(bytes).unwrap_or(i32::MAX)))
    }

    /// Implements getsockopt(2) with level and name.
    ///
    /// # Errors
    /// The errors that Linux returns.
    pub fn get_option(&mut self, fd: Fd, level: i32, name: i32) -> Result<Answer, Errno> {
        let options = self.socket(fd)?.options.clone();
        let config = &self.settings.config;
        Ok(number(match (level, name) {
            (SOL_SOCKET, SO_ERROR) => {
                let error = self.stream(fd).ok().and_then(|stream| stream.take_error());
                error.map_or(0, |error| error.0)
            }
            (SOL_SOCKET, SO_RCVBUF) => {
                options.receive_limit.unwrap_or(config.receive_buffer_bytes) as i32
            }
            (SOL_SOCKET, SO_SNDBUF) => {
                options.send_limit.unwrap_or(config.send_buffer_bytes) as i32
            }
            (IPPROTO_TCP, TCP_MAXSEG) => self.segment_bytes(fd, &options),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => millis(options.user_timeout),
            (IPPROTO_TCP, TCP_CONGESTION) => {
                let name = OptionValue::Name(self.congestion_name(&options).to_owned());
                return Ok(Answer { option: Some(name), ..Answer::default() });
            }
            _ => plain_option(&options, level, name).ok_or(Errno::ENOPROTOOPT)?,
        }))
    }

    /// Returns TCP_INFO.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn info(&mut self, fd: Fd) -> Result<TcpInfo, Errno> {
        let (mtu, delayed_ack) = (self.settings.mtu, self.settings.config.delayed_ack);
        let Kind::Stream(stream) = &self.socket(fd)?.kind else { return Err(Errno::ENOTCONN) };
        let seen = stream.tcp.statistics();
        let state = self
            .running
            .as_ref()
            .and_then(|running| match &self.sockets.get(&fd)?.kind {
                Kind::Stream(stream) => running.view(&stream.tcp),
                _ => None,
            })
            .map(|view| view.state);
        Ok(TcpInfo { seen, state, mtu, delayed_ack })
    }

    /// Returns TCP_MAXSEG: that of the connection, or the set value, or the default.
    fn segment_bytes(&mut self, fd: Fd, options: &Options) -> i32 {
        match self.stream(fd) {
            Ok(stream) if stream.was_open() => stream.tcp.statistics().mss as i32,
            _ => options.segment_bytes.map_or(DEFAULT_SEGMENT_BYTES, i32::from),
        }
    }

    fn congestion_name(&self, options: &Options) -> &'static str {
        match options.congestion.unwrap_or(self.settings.config.congestion) {
            Algorithm::Cubic => "cubic",
            Algorithm::Reno => "reno",
            Algorithm::Bbr => "bbr",
        }
    }

    /// Implements setsockopt(2) with level, name and value.
    ///
    /// # Errors
    /// The errors that Linux returns; [`Errno::ENOPROTOOPT`] also for options that the host cannot change on
    /// an existing connection. It sizes the buffers of such a connection by itself.
    pub fn set_option(
        &mut self,
        fd: Fd,
        level: i32,
        name: i32,
        value: &OptionValue,
    ) -> Result<i64, Errno> {
        let socket = self.socket(fd)?;
        let (options, exists) = (&mut socket.options, matches!(socket.kind, Kind::Stream(_)));
        if exists && AT_THE_BEGINNING.contains(&(level, name)) {
            return Err(Errno::ENOPROTOOPT);
        }
        match value {
            OptionValue::Linger(is_on, seconds) if (level, name) == (SOL_SOCKET, SO_LINGER) => {
                options.resets_on_close = *is_on != 0 && *seconds == 0;
            }
            OptionValue::Name(chosen) if (level, name) == (IPPROTO_TCP, TCP_CONGESTION) => {
                options.congestion = Some(algorithm(chosen).ok_or(Errno::ENOENT)?);
            }
            OptionValue::Number(number) => match level {
                SOL_SOCKET => options.set_socket(name, *number)?,
                IPPROTO_TCP => options.set_tcp(name, *number)?,
                _ => return Err(Errno::ENOPROTOOPT),
            },
            _ => return Err(Errno::EINVAL),
        }
        self.listen_again(fd)?;
        self.apply(fd, level, name)?;
        self.turn();
        Ok(0)
    }

    /// Applies a changed option to an existing connection.
    fn apply(&mut self, fd: Fd, level: i32, name: i32) -> Result<(), Errno> {
        let options = self.socket(fd)?.options.clone();
        let default = self.settings.config.user_timeout;
        let Ok(stream) = self.stream(fd) else { return Ok(()) };
        let applied = match (level, name) {
            (IPPROTO_TCP, TCP_NODELAY) => stream.tcp.set_nodelay(options.is_nagle_off),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                stream.tcp.set_user_timeout(options.user_timeout.unwrap_or(default))
            }
            (SOL_SOCKET, SO_KEEPALIVE)
            | (IPPROTO_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                stream.tcp.set_keep_alive(options.is_kept_alive.then_some(options.keep_alive))
            }
            _ => Ok(()),
        };
        applied.map_err(|error| errno(&error))
    }
}

impl Options {
    fn set_socket(&mut self, name: i32, number: i32) -> Result<(), Errno> {
        let doubled = u32::try_from(number).unwrap_or(0).saturating_mul(2);
        match name {
            SO_REUSEADDR | SO_REUSEPORT => self.reuses_address = number != 0,
            SO_SNDBUF => self.send_limit = Some(doubled.clamp(LEAST_SEND_LIMIT, 1 << 30)),
            SO_RCVBUF => self.receive_limit = Some(doubled.clamp(LEAST_RECEIVE_LIMIT, 1 << 30)),
            SO_KEEPALIVE => self.is_kept_alive = number != 0,
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    fn set_tcp(&mut self, name: i32, number: i32) -> Result<(), Errno> {
        let seconds = |most: i32| match number {
            1.. if number <= most => Ok(Duration::from_secs(number as u64)),
            _ => Err(Errno::EINVAL),
        };
        match name {
            TCP_NODELAY => self.is_nagle_off = number != 0,
            TCP_QUICKACK => {}
            TCP_INQ => {
                self.says_rest = match number {
                    0 | 1 => number == 1,
                    _ => return Err(Errno::EINVAL),
                };
            }
            TCP_MAXSEG => {
                let bytes = u16::try_from(number).ok().filter(|bytes| *bytes >= LEAST_SEGMENT);
                self.segment_bytes = Some(bytes.ok_or(Errno::EINVAL)?);
            }
            TCP_USER_TIMEOUT => {
                let timeout = u64::try_from(number).map_err(|_| Errno::EINVAL)?;
                self.user_timeout = (timeout > 0).then(|| Duration::from_millis(timeout));
            }
            TCP_KEEPIDLE => self.keep_alive.idle = seconds(MOST_SECONDS)?,
            TCP_KEEPINTVL => self.keep_alive.interval = seconds(MOST_SECONDS)?,
            TCP_KEEPCNT => {
                let probes = u8::try_from(number).ok().filter(|probes| *probes > 1);
                self.keep_alive =
                    KeepAlive { probes: probes.ok_or(Errno::EINVAL)?, ..self.keep_alive };
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }
}

fn number(number: i32) -> Answer {
    Answer { option: Some(OptionValue::Number(number)), ..Answer::default() }
}

/// Returns the value of an option that is returned as it was set; `None` for other options.
fn plain_option(options: &Options, level: i32, name: i32) -> Option<i32> {
    let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    Some(match (level, name) {
        (SOL_SOCKET, SO_TYPE) => SOCK_STREAM,
        (SOL_SOCKET, SO_REUSEADDR) => options.reuses_address.into(),
        (SOL_SOCKET, SO_KEEPALIVE) => options.is_kept_alive.into(),
        (IPPROTO_TCP, TCP_NODELAY) => options.is_nagle_off.into(),
        (IPPROTO_TCP, TCP_INQ) => options.says_rest.into(),
        (IPPROTO_TCP, TCP_KEEPIDLE) => seconds(options.keep_alive.idle),
        (IPPROTO_TCP, TCP_KEEPINTVL) => seconds(options.keep_alive.interval),
        (IPPROTO_TCP, TCP_KEEPCNT) => options.keep_alive.probes.into(),
        _ => return None,
    })
}

fn millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(0, |timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
}

/// Options that this host fixes when a connection is made. Linux can change them later, too.
const AT_THE_BEGINNING: &[(i32, i32)] = &[(IPPROTO_TCP, TCP_MAXSEG), (IPPROTO_TCP, TCP_CONGESTION)];
/// TCP_MAXSEG before the connection exists (RFC 9293, section 3.7.1).
const DEFAULT_SEGMENT_BYTES: i32 = 536;
/// Smallest accepted segment size, as in Linux.
const LEAST_SEGMENT: u16 = 88;
/// Smallest send buffer; smaller values are raised to it, as in Linux.
const LEAST_SEND_LIMIT: u32 = 4608;
const LEAST_RECEIVE_LIMIT: u32 = 2304;
/// Longest accepted time of an option, as in Linux.
const MOST_SECONDS: i32 = 32_767;
