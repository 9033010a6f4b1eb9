//! Both sides of a queue against each other, and each against a hostile one.

mod hostile_device;
mod hostile_driver;
mod laps;
mod pair;
mod promises;
mod stories;
mod threads;
