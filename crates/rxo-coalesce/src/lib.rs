//! The receive engine (in preparation).
