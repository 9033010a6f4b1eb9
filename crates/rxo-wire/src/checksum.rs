//! The Internet checksum (in preparation).
