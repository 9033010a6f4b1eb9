//! Tests of code that other programs write around the engine: the examples, and the loops of VPNs that write
//! to a TUN.

#![allow(unreachable_pub, reason = "an example's `main` is a function of a module here")]

#[path = "../../examples/frames_back.rs"]
mod frames_back;
#[path = "../../examples/own_sink.rs"]
mod own_sink;
#[path = "../../examples/timer_loop.rs"]
mod timer_loop;
#[path = "../../examples/tokio_queue.rs"]
mod tokio_queue;
#[path = "../../examples/vmm_loop.rs"]
mod vmm_loop;

#[path = "../../examples/loops/batches.rs"]
mod batches;
#[path = "../../examples/loops/tasks.rs"]
mod tasks;
#[path = "../../examples/loops/tun.rs"]
mod tun;

#[test]
fn every_example_runs() {
    tokio_queue::main().unwrap();
    own_sink::main().unwrap();
    timer_loop::main().unwrap();
    frames_back::main().unwrap();
    vmm_loop::main().unwrap();
}
