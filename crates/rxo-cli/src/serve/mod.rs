//! `rxo serve`: files over HTTP/1.1.
//!
//! From the outside in: [`server`] takes clients in, a thread for each and [`places`] for so many;
//! [`conversation`] is one client: [`heads`] cuts what it sends into requests, [`request`] reads one,
//! [`site`] finds its file and decides the [`answer`], [`send`] sends it. The decisions are pure and
//! each in its file: [`target`] (which file), [`conditions`] (which version), [`ranges`] (which
//! bytes), [`types`], [`listing`]. [`root`] is the only one that opens files. All of it is generic over
//! the connection ([`client`]), so it is tested without the stack.

mod access;
mod answer;
mod client;
mod conditions;
mod conversation;
mod heads;
mod limits;
mod listing;
#[cfg(test)]
mod pipe;
mod places;
mod ranges;
mod refusal;
mod request;
mod root;
mod send;
mod server;
mod site;
mod target;
mod types;
