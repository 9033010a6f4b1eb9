//! A fixed pool of buffers (in preparation).
