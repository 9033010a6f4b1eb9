//! Options and flags: getsockopt, setsockopt, fcntl, ioctl.

use rxo_frame::Duration;
use rxo_tcp::KeepAlive;

use super::call::{Answer, OptionValue, Outcome};
use super::info::{Limits, TcpInfo};
use super::settings::{RING_BYTES, algorithm};
use super::socket::{Kind, Options};
use super::{Fd, VirtualHost};
use crate::abi::*;

impl VirtualHost {
    pub(super) fn fcntl(&mut self, fd: Fd, command: i32, argument: i32) -> Result<i64, Errno> {
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

    pub(super) fn ioctl(&mut self, fd: Fd, request: u64) -> Outcome {
        if let Kind::Listener(_) = self.socket(fd)?.kind {
            return Err(Errno::EINVAL);
        }
        let endpoint = self.stream(fd)?;
        let bytes = match request {
            SIOCINQ => endpoint.tcp.readable_bytes(),
            SIOCOUTQ => endpoint.unacknowledged() as usize,
            SIOCOUTQNSD => {
                let statistics = endpoint.tcp.statistics();
                let sent = (statistics.snd_nxt - statistics.snd_una).max(0) as usize;
                (endpoint.unacknowledged() as usize).saturating_sub(sent)
            }
            _ => return Err(Errno::EINVAL),
        };
        Ok(Answer::option(i32::try_from(bytes).unwrap_or(i32::MAX)))
    }

    pub(super) fn get_option(&mut self, fd: Fd, level: i32, name: i32) -> Outcome {
        let options = self.socket(fd)?.options.clone();
        match (level, name) {
            (SOL_SOCKET, SO_ERROR) => {
                let error = self.stream(fd).ok().and_then(|endpoint| endpoint.error.take());
                Ok(Answer::option(error.map_or(0, |error| error.0)))
            }
            (SOL_SOCKET, SO_RCVBUF) => {
                let default = self.settings.config.receive_buffer_bytes;
                Ok(Answer::option(options.receive_limit.unwrap_or(default) as i32))
            }
            (SOL_SOCKET, SO_SNDBUF) => {
                let default = self.settings.send_limit_bytes;
                Ok(Answer::option(options.send_limit.unwrap_or(default) as i32))
            }
            (SOL_SOCKET, SO_MEMINFO) => self.memory(fd).map(Answer::bytes),
            (IPPROTO_TCP, TCP_INFO) => self.info(fd).map(Answer::info),
            // Like Linux, for congestion controls without information.
            (IPPROTO_TCP, TCP_CC_INFO) => Ok(Answer::bytes(Vec::new())),
            (IPPROTO_TCP, TCP_MAXSEG) => Ok(Answer::option(self.segment_bytes(fd, &options))),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => Ok(Answer::option(millis(options.user_timeout))),
            (IPPROTO_TCP, TCP_CONGESTION) => Ok(self.congestion_name(&options)),
            _ => plain_option(&options, level, name).map(Answer::option).ok_or(Errno::ENOPROTOOPT),
        }
    }

    fn info(&mut self, fd: Fd) -> Result<TcpInfo, Errno> {
        let now = self.now;
        let config = &self.settings.config;
        let set = self.sockets.get(&fd).and_then(|socket| socket.options.receive_limit);
        let limits = Limits {
            delayed_ack: config.delayed_ack,
            path_bytes: self.settings.mtu.into(),
            receive_bytes: set.map_or(config.receive_buffer_bytes, |limit| limit / 2),
        };
        Ok(TcpInfo::of(self.stream(fd)?, now, &limits))
    }

    /// SO_MEMINFO in bytes of payload: what waits to be read and acknowledged, and the limits. The
    /// memory that Linux counts for itself is 0.
    fn memory(&mut self, fd: Fd) -> Result<Vec<u8>, Errno> {
        let received = self.settings.config.receive_buffer_bytes;
        let receive_limit = self.socket(fd)?.options.receive_limit.unwrap_or(received);
        let send_limit = self.write_limits(fd)?.queued;
        let endpoint = self.stream(fd)?;
        let (unread, written) = (endpoint.tcp.readable_bytes() as u32, endpoint.unacknowledged());
        let rows = [unread, receive_limit, written, send_limit, 0, written, 0, 0, 0];
        Ok(rows.iter().flat_map(|row| row.to_ne_bytes()).collect())
    }

    /// TCP_MAXSEG: of the connection, or as set, or the default.
    fn segment_bytes(&mut self, fd: Fd, options: &Options) -> i32 {
        match self.stream(fd) {
            Ok(endpoint) if endpoint.was_open => endpoint.tcp.statistics().mss as i32,
            _ => options.segment_bytes.map_or(DEFAULT_SEGMENT_BYTES, i32::from),
        }
    }

    fn congestion_name(&self, options: &Options) -> Answer {
        let chosen = options.congestion.unwrap_or(self.settings.config.congestion);
        let name = match chosen {
            rxo_tcp::Algorithm::Cubic => "cubic",
            rxo_tcp::Algorithm::Reno => "reno",
            rxo_tcp::Algorithm::Bbr => "bbr",
        };
        Answer { option: Some(OptionValue::Name(name.to_owned())), ..Answer::default() }
    }

    pub(super) fn set_option(
        &mut self,
        fd: Fd,
        level: i32,
        name: i32,
        value: &OptionValue,
    ) -> Result<i64, Errno> {
        let options = &mut self.socket(fd)?.options;
        match value {
            OptionValue::Linger(is_on, seconds) if (level, name) == (SOL_SOCKET, SO_LINGER) => {
                options.resets_on_close = *is_on != 0 && *seconds == 0;
            }
            OptionValue::Name(chosen) if (level, name) == (IPPROTO_TCP, TCP_CONGESTION) => {
                options.congestion = Some(algorithm(chosen).ok_or(Errno(2))?);
            }
            OptionValue::Number(number) => match level {
                SOL_SOCKET => options.set_socket(name, *number)?,
                IPPROTO_TCP => options.set_tcp(name, *number)?,
                _ => return Err(Errno::ENOPROTOOPT),
            },
            _ => return Err(Errno::EINVAL),
        }
        self.apply(fd, level, name)?;
        Ok(0)
    }

    /// Applies a changed option to an existing connection.
    fn apply(&mut self, fd: Fd, level: i32, name: i32) -> Result<(), Errno> {
        let options = self.socket(fd)?.options.clone();
        let now = self.now;
        let default = self.settings.config.user_timeout;
        let Ok(endpoint) = self.stream(fd) else { return Ok(()) };
        match (level, name) {
            (IPPROTO_TCP, TCP_NODELAY) => {
                endpoint.is_nagle_off = options.is_nagle_off;
                endpoint.tcp.set_nagle(!options.is_nagle_off);
                if options.is_nagle_off {
                    endpoint.uncork();
                }
            }
            (IPPROTO_TCP, TCP_CORK) => {
                endpoint.is_corked = options.is_corked;
                if !options.is_corked {
                    endpoint.uncork();
                }
            }
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                endpoint.tcp.set_user_timeout(now, options.user_timeout.unwrap_or(default));
            }
            (SOL_SOCKET, SO_KEEPALIVE)
            | (IPPROTO_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                let settings = options.is_kept_alive.then_some(options.keep_alive);
                endpoint.tcp.set_keep_alive(now, settings).map_err(|_| Errno::EINVAL)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Options {
    fn set_socket(&mut self, name: i32, number: i32) -> Result<(), Errno> {
        let doubled = u32::try_from(number).unwrap_or(0).saturating_mul(2);
        match name {
            SO_REUSEADDR | SO_REUSEPORT => self.reuses_address = number != 0,
            SO_SNDBUF => {
                self.send_limit = Some(doubled.clamp(LEAST_SEND_LIMIT, RING_BYTES));
            }
            SO_RCVBUF => {
                self.receive_limit = Some(doubled.clamp(LEAST_RECEIVE_LIMIT, 1 << 30));
            }
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
            TCP_CORK => self.is_corked = number != 0,
            TCP_QUICKACK => {}
            TCP_INQ => {
                self.says_rest = match number {
                    0 | 1 => number == 1,
                    _ => return Err(Errno::EINVAL),
                };
            }
            TCP_NOTSENT_LOWAT => self.unsent_limit = number as u32,
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

/// Options whose value is what was set.
fn plain_option(options: &Options, level: i32, name: i32) -> Option<i32> {
    let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    Some(match (level, name) {
        (SOL_SOCKET, SO_TYPE) => SOCK_STREAM,
        (SOL_SOCKET, SO_REUSEADDR) => options.reuses_address.into(),
        (SOL_SOCKET, SO_KEEPALIVE) => options.is_kept_alive.into(),
        (IPPROTO_TCP, TCP_NODELAY) => options.is_nagle_off.into(),
        (IPPROTO_TCP, TCP_CORK) => options.is_corked.into(),
        (IPPROTO_TCP, TCP_INQ) => options.says_rest.into(),
        (IPPROTO_TCP, TCP_NOTSENT_LOWAT) => options.unsent_limit as i32,
        (IPPROTO_TCP, TCP_KEEPIDLE) => seconds(options.keep_alive.idle),
        (IPPROTO_TCP, TCP_KEEPINTVL) => seconds(options.keep_alive.interval),
        (IPPROTO_TCP, TCP_KEEPCNT) => options.keep_alive.probes.into(),
        _ => return None,
    })
}

fn millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(0, |timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
}

/// TCP_MAXSEG before the connection exists (RFC 9293, section 3.7.1).
const DEFAULT_SEGMENT_BYTES: i32 = 536;
/// Smaller values are refused, like Linux.
const LEAST_SEGMENT: u16 = 88;
/// Smaller values are raised to this, like Linux.
const LEAST_SEND_LIMIT: u32 = 4608;
const LEAST_RECEIVE_LIMIT: u32 = 2304;
/// Like Linux.
const MOST_SECONDS: i32 = 32_767;
