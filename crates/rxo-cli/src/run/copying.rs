//! `--path` and `--layout`: how packets are copied into the memory of guests.

use anyhow::Result;
use rxo_driver::{CopyPath, DeviceName, FrameLayout, GuestOptions};
use serde::Serialize;

use crate::exit::usage;
use crate::flags::{CopyingFlags, LayoutFlag, PathFlag};

/// The path and the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Copying {
    path: &'static str,
    layout: &'static str,
    #[serde(skip)]
    of: (CopyPath, FrameLayout),
}

impl Copying {
    /// Reads the flags for the device `host`, which `flag` names.
    ///
    /// # Errors
    /// If a flag is not the default, and `host` is no guest.
    pub(super) fn of(flags: CopyingFlags, host: &DeviceName) -> Result<Self> {
        let copying = Self::new(flags);
        let is_guest = host.kind().prefix == "vhost";
        let wrong = [("path", copying.path, "gather"), ("layout", copying.layout, "frames")];
        match wrong.iter().find(|(_, value, default)| !is_guest && value != default) {
            Some((flag, value, _)) => Err(usage(format!(
                "--{flag} {value} is about the memory of a guest, and --host {host} is none; give \
                 --host vhost:PATH"
            ))),
            None => Ok(copying),
        }
    }

    /// Returns the options that are offered to guests, with this path and layout.
    pub(super) const fn options(self, offered: GuestOptions) -> GuestOptions {
        let (path, layout) = self.of;
        GuestOptions { path, layout, ..offered }
    }

    /// Formats path and layout; `None` if both are the defaults.
    pub(super) fn text(self) -> Option<String> {
        let Self { path, layout, .. } = self;
        (self != Self::default()).then(|| format!("path {path}, layout {layout}"))
    }

    const fn new(flags: CopyingFlags) -> Self {
        let (path, path_of) = match flags.path {
            PathFlag::Gather => ("gather", CopyPath::Gather),
            PathFlag::Linear => ("linear", CopyPath::Linear),
        };
        let (layout, layout_of) = match flags.layout {
            LayoutFlag::Frames => ("frames", FrameLayout::Frames),
            LayoutFlag::Pages => ("pages", FrameLayout::Pages),
        };
        Self { path, layout, of: (path_of, layout_of) }
    }
}

impl Default for Copying {
    fn default() -> Self {
        Self::new(CopyingFlags { path: PathFlag::Gather, layout: LayoutFlag::Frames })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_memory_of_guests_is_copied_into() {
        let flags = |path, layout| CopyingFlags { path, layout };
        let (guest, tap) = ("vhost:/run/s".parse().unwrap(), "tap:rxo0".parse().unwrap());
        let linear = flags(PathFlag::Linear, LayoutFlag::Frames);
        let pages = flags(PathFlag::Gather, LayoutFlag::Pages);
        let options = Copying::of(linear, &guest).unwrap().options(GuestOptions::default());
        assert_eq!((options.path, options.layout), (CopyPath::Linear, FrameLayout::Frames));
        let options = Copying::of(pages, &guest).unwrap().options(GuestOptions::default());
        assert_eq!((options.path, options.layout), (CopyPath::Gather, FrameLayout::Pages));
        let text = Copying::of(linear, &guest).unwrap().text();
        assert_eq!(text.as_deref(), Some("path linear, layout frames"));
        let usual = flags(PathFlag::Gather, LayoutFlag::Frames);
        assert_eq!(Copying::of(usual, &tap).unwrap().text(), None);
        for (flags, message) in [(linear, "--path linear is"), (pages, "--layout pages is")] {
            let error = Copying::of(flags, &tap).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
