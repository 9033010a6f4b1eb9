//! Flags of `rxo cat`.

use clap::Args;

use super::EndpointFlags;

#[derive(Args, Clone, Debug)]
pub(crate) struct CatFlags {
    #[command(flatten)]
    pub(crate) endpoint: EndpointFlags,
}
