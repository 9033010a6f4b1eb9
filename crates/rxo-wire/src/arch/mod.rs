//! What the processor does better when asked by name. The only unsafe code of this crate.
