//! `rxo-lab menon`: Menon and Zwaenepoel, "Optimizing TCP Receive Performance" (2008). A module
//! for each part of it: [`receive`] for a host that receives (section 5), [`acks`] (`rxo-lab menon
//! acks`) for those who count acknowledgements (sections 3.4 and 4), [`card`] (`rxo-lab menon card`) for a host whose
//! device costs it nothing.

pub(crate) mod acks;
pub(crate) mod card;
pub(crate) mod receive;
pub(crate) mod verdict;
