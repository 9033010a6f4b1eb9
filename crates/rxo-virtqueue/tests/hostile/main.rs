//! Runs each side of a queue over memory with arbitrary bytes. The fuzz targets `ring-device` and
//! `ring-driver` run the same harness.

mod harness;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_device_keeps_to_its_memory_whatever_the_driver_writes(
        script in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        harness::device::run(&script);
    }

    #[test]
    fn a_driver_keeps_its_books_whatever_the_device_writes(
        script in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        harness::driver::run(&script);
    }
}
