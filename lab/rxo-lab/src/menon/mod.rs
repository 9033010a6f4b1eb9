//! `rxo-lab menon`: repeats Menon and Zwaenepoel, "Optimizing TCP Receive Performance" (2008). [`receive`]
//! measures a receiving host (section 5), [`acks`] (`rxo-lab menon acks`) senders that count ACKs (sections
//! 3.4 and 4), and [`card`] (`rxo-lab menon card`) a host whose device costs it nothing. The paper's values, the
//! figures and the claims stand in `claims/menon*.json`.

pub(crate) mod acks;
pub(crate) mod card;
mod fit;
pub(crate) mod receive;
mod stack;
