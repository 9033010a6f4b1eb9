//! A host's TCP in user space: what a device receives is coalesced, given to connections, and read
//! by applications through sockets like those of the standard library.

pub mod link;
