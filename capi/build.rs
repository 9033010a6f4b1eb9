//! Sets the soname of the shared library: programs load `librxo.so.1` or `librxo-trace.so.1`, wherever it is installed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let suffix = std::env::var("CARGO_FEATURE_TRACE").map_or("", |_| "-trace");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librxo{suffix}.so.1");
    }
}
