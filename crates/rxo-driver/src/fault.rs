//! Messages for errors of the system: one line that names the device, the failure and the remedy.

use std::io;

use rxo_device::DeviceError;

use crate::{DeviceName, Finding};

/// Creates an error with this message for the error `source` of the system.
pub(crate) fn system(message: impl Into<String>, source: io::Error) -> DeviceError {
    DeviceError::System { message: message.into(), source }
}

/// Creates the error for a failure to open `device`. The message names missing privilege or memory if that is
/// the reason.
pub(crate) fn opening(device: &str, source: io::Error) -> DeviceError {
    let remedy = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run as root or give CAP_NET_RAW and CAP_NET_ADMIN",
        Some(libc::ENOMEM | libc::ENOBUFS) => "too little memory: ask for a smaller ring",
        _ => "the system refused",
    };
    system(format!("cannot open {device}; {remedy}"), source)
}

/// Creates the error for an interface `name` that does not exist.
pub(crate) fn no_such_interface(device: &str, name: &str) -> DeviceError {
    DeviceError::Usage(format!("{device}: {}", no_interface(name)))
}

/// Returns the message for an interface that does not exist, without a device's name.
pub(crate) fn no_interface(name: &str) -> String {
    format!("there is no interface `{name}` here; `ip link` lists those there are")
}

/// Creates the error for an interface that exists but is down.
pub(crate) fn is_down(device: &str, name: &str) -> DeviceError {
    system(down(device, name).to_string(), io::Error::from_raw_os_error(libc::ENETDOWN))
}

/// Creates the finding for an interface that is down.
pub(crate) fn down(device: &str, name: &str) -> Finding {
    let remedy = format!("bring it up with `ip link set {name} up`");
    Finding::breaks("state", format!("{device} is down"), remedy)
}

/// Converts `error`, which an open device returned, to the error for the caller. `is_gone` is `true` if the
/// device no longer exists. Returns `None` if the device is only down and may come up again.
pub(crate) fn device_error(device: &str, is_gone: bool, error: io::Error) -> Option<DeviceError> {
    match is_gone {
        true => Some(DeviceError::Gone(device.to_owned())),
        false if means_down(&error) => None,
        false => Some(system(format!("{device} failed while in use"), error)),
    }
}

/// Returns an error unless `handed`, the number of queues in a handover, equals `wanted`, the requested number of
/// queues.
pub(crate) fn check_queue_count(
    device: &DeviceName,
    handed: usize,
    wanted: u32,
) -> Result<(), DeviceError> {
    if handed == wanted as usize {
        return Ok(());
    }
    Err(DeviceError::Usage(format!(
        "{device} has {handed} workers and not {wanted}; give --workers {handed}, as the running one has"
    )))
}

/// Returns `true` if `error` means that the device exists, but is down.
pub(crate) fn means_down(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::EIO))
}

/// Returns `true` if `error` means that the device no longer exists.
pub(crate) fn means_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::EBADFD | libc::EBADF))
}
