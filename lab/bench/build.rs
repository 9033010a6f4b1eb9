//! Compiles the C shim of DPDK's `rte_gro`, but only with the feature `dpdk`, so that the workspace
//! builds on machines without DPDK.

fn main() {
    println!("cargo::rerun-if-changed=shim/gro.c");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::Command;

    /// Asks `pkg-config` for DPDK, compiles the shim, and links the two libraries that it needs.
    pub(crate) fn build() {
        let mut shim = cc::Build::new();
        shim.file("shim/gro.c").opt_level(3).warnings(true);
        for flag in pkg_config("--cflags") {
            shim.flag(&flag);
        }
        shim.compile("rxo_bench_gro");
        for flag in pkg_config("--libs-only-L") {
            if let Some(folder) = flag.strip_prefix("-L") {
                println!("cargo::rustc-link-search=native={folder}");
            }
        }
        println!("cargo::rustc-link-lib=dylib=rte_gro");
        println!("cargo::rustc-link-lib=dylib=rte_net");
    }

    fn pkg_config(what: &str) -> Vec<String> {
        let found = Command::new("pkg-config").args([what, "libdpdk"]).output();
        match found {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            _ => panic!(
                "pkg-config does not know libdpdk: install libdpdk-dev, or build without the \
                 feature `dpdk`"
            ),
        }
    }
}
