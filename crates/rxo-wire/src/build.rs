//! Writing headers (in preparation).
