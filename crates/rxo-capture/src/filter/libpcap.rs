//! The filter functions of the installed libpcap, which is loaded at run time and searched by name.
//!
//! The unsafe code relies on libpcap's documented interface (pcap_compile(3PCAP), pcap-bpf.h), which has not
//! changed since version 1.0.
#![allow(unsafe_code, reason = "calls a library in C")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute_copy;
use core::ptr;
use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The file names of the library: first Debian's, then the name in other distributions.
const NAMES: [&CStr; 2] = [c"libpcap.so.0.8", c"libpcap.so.1"];
/// The snap length for which filters are compiled, in bytes; tcpdump uses the same value.
const SNAP_BYTES: c_int = 262_144;
/// `PCAP_NETMASK_UNKNOWN`: filters that need the network's mask do not compile.
const NO_MASK: c_uint = u32::MAX;
const OPTIMIZE: c_int = 1;

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u16,
    jump_if_true: u8,
    jump_if_false: u8,
    operand: u32,
}

/// `struct bpf_program`.
#[repr(C)]
struct Compiled {
    count: c_uint,
    instructions: *mut Instruction,
}

/// A compiled filter.
#[derive(Debug)]
pub(super) struct Program(Cow<'static, [Instruction]>);

/// The functions of libpcap. The library stays loaded.
#[derive(Debug)]
pub(super) struct Library {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
    compile:
        unsafe extern "C" fn(*mut c_void, *mut Compiled, *const c_char, c_int, c_uint) -> c_int,
    error: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    free: unsafe extern "C" fn(*mut Compiled),
    close: unsafe extern "C" fn(*mut c_void),
    run: unsafe extern "C" fn(*const Instruction, *const u8, c_uint, c_uint) -> c_uint,
    /// A lock that is held while a filter is compiled, because libpcap before 1.8 can only compile one filter
    /// at a time.
    compiling: Mutex<()>,
}

impl Library {
    /// Returns the library. The first call loads it.
    ///
    /// # Errors
    /// If the library cannot be loaded, or lacks a function; the string contains the system's reason.
    pub(super) fn get() -> Result<&'static Self, String> {
        static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
        LOADED.get_or_init(|| Self::load(&NAMES)).as_ref().map_err(Clone::clone)
    }

    fn load(names: &[&CStr]) -> Result<Self, String> {
        let open = |name: &CStr| {
            // SAFETY: the name ends with a zero byte. Loading libpcap runs no code of its own.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            (!handle.is_null()).then_some(handle)
        };
        // The reason is that for the last name, which most systems have.
        let handle = names.iter().find_map(|name| open(name)).ok_or_else(last_error)?;
        // SAFETY: the type of each field is that of the function of this name in libpcap.
        unsafe {
            Ok(Self {
                open_dead: find(handle, c"pcap_open_dead")?,
                compile: find(handle, c"pcap_compile")?,
                error: find(handle, c"pcap_geterr")?,
                free: find(handle, c"pcap_freecode")?,
                close: find(handle, c"pcap_close")?,
                run: find(handle, c"bpf_filter")?,
                compiling: Mutex::new(()),
            })
        }
    }

    /// Compiles `text` for packets of the data link type `link`.
    ///
    /// # Errors
    /// If the filter is invalid for that link type; the string contains libpcap's reason.
    pub(super) fn compile(&self, text: &CStr, link: c_int) -> Result<Program, String> {
        let _turn = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut compiled = Compiled { count: 0, instructions: ptr::null_mut() };
        // SAFETY: the handle is checked, used only before it is closed, and closed once. libpcap writes `compiled` if it
        // returns 0; the instructions are copied before they are freed. The error text is copied before the handle ends.
        unsafe {
            let handle = (self.open_dead)(link, SNAP_BYTES);
            if handle.is_null() {
                return Err("libpcap has no memory".to_owned());
            }
            let code = (self.compile)(handle, &raw mut compiled, text.as_ptr(), OPTIMIZE, NO_MASK);
            let result = if code == 0 && !compiled.instructions.is_null() {
                let count = compiled.count as usize;
                let instructions = core::slice::from_raw_parts(compiled.instructions, count);
                let program = Program(instructions.to_vec().into());
                (self.free)(&raw mut compiled);
                if program.asks_kernel() { Err(ASKS_KERNEL.to_owned()) } else { Ok(program) }
            } else {
                Err(CStr::from_ptr((self.error)(handle)).to_string_lossy().into_owned())
            };
            (self.close)(handle);
            result
        }
    }

    /// Returns `true` if `program` accepts the captured `bytes` of a packet that was `original_bytes` long.
    pub(super) fn accepts(&self, program: &Program, bytes: &[u8], original_bytes: u32) -> bool {
        let captured_bytes = bytes.len() as c_uint;
        // SAFETY: libpcap compiled the program, so it ends; it reads only the captured bytes.
        let taken = unsafe {
            (self.run)(program.0.as_ptr(), bytes.as_ptr(), original_bytes, captured_bytes)
        };
        taken > 0
    }
}

/// The error message of libpcap for a filter that no packet of a link type can match. libpcap refuses to
/// compile such a filter.
pub(super) const REJECTS_ALL: &str = "expression rejects all packets";

impl Program {
    /// A program that accepts no packet: it returns 0.
    pub(super) const NOTHING: Self = Self(Cow::Borrowed(&[Instruction {
        code: 0x06,
        jump_if_true: 0,
        jump_if_false: 0,
        operand: 0,
    }]));

    /// Returns `true` if the program loads metadata of a packet that only the kernel has. For `inbound`,
    /// libpcap compiles such a load if the link header does not contain the direction. Outside the kernel, the
    /// load would be out of bounds and the filter would accept no packet.
    fn asks_kernel(&self) -> bool {
        const LOAD_ABSOLUTE: u16 = 0x20;
        const CLASS_AND_MODE: u16 = 0xe7;
        /// `SKF_AD_OFF` of Linux: offsets from here on address the kernel's metadata instead of packet bytes.
        const FACTS: u32 = 0xffff_f000;
        self.0.iter().any(|it| it.code & CLASS_AND_MODE == LOAD_ABSOLUTE && it.operand >= FACTS)
    }
}

const ASKS_KERNEL: &str =
    "it asks for what only the kernel knows of a packet, as inbound and outbound do";

/// Returns the function `name` of the open library `handle`.
///
/// # Safety
/// `F` must be a pointer to a function, of the type that this function has.
unsafe fn find<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, String> {
    // SAFETY: the name ends with a zero byte, and a pointer to a function is as large as any pointer.
    unsafe {
        let found = libc::dlsym(handle, name.as_ptr());
        if found.is_null() { Err(last_error()) } else { Ok(transmute_copy(&found)) }
    }
}

/// Returns the reason why the last call of this thread to the dynamic linker failed.
fn last_error() -> String {
    // SAFETY: the text is of this thread, and copied before its next call to the dynamic linker.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason given".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilterError;
    use super::*;

    #[test]
    fn an_absent_library_is_named_with_a_remedy() {
        let why = Library::load(&[c"libno-such.so.8", c"libno-such.so.9"]).unwrap_err();
        let text = FilterError::Missing(why).to_string();
        assert!(text.starts_with("libpcap cannot be loaded (libno-such.so.9: "), "{text}");
        assert!(text.contains("apt install libpcap0.8") && !text.contains('\n'), "{text}");
    }
}
