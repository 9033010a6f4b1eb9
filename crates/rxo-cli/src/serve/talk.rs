//! The thread of one client: does what its [`Conversation`] asks for.

use std::io;
use std::time::{Instant, SystemTime};

use rxo_serve::files::{Opened, Root};
use rxo_serve::{Conversation, Exchange, Now, Step};

use super::client::{self, Client};

/// The server, as one conversation sees it.
pub(super) struct Host<'h> {
    pub(super) root: &'h Root,
    /// Whether clients that only wait may stay at the moment.
    pub(super) may_stay: &'h dyn Fn() -> bool,
    /// Called with each request when its answer was sent.
    pub(super) log: &'h dyn Fn(Exchange),
}

/// Holds a conversation to its end. A connection that breaks is no error: clients do that.
pub(super) fn hold(client: &mut impl Client, mut conversation: Conversation, host: &Host<'_>) {
    let mut opened = Opened::new(host.root);
    loop {
        let (instant, date) = (Instant::now(), SystemTime::now());
        let now = Now { instant, date, may_stay: (host.may_stay)() };
        let done: io::Result<()> = match conversation.next(now) {
            Step::Read { into, until } => client::read(client, into, until)
                .map(|read| read.into_iter().for_each(|bytes| conversation.received(bytes))),
            Step::Write { bytes, until } => client::write(client, bytes, until)
                .map(|written| written.into_iter().for_each(|bytes| conversation.wrote(bytes))),
            Step::Load { from, into } => opened.load(from, into).map(|()| conversation.loaded()),
            Step::Find(lookup) => {
                conversation.found(opened.find(&lookup));
                Ok(())
            }
            Step::List => {
                conversation.listed(opened.names());
                Ok(())
            }
            Step::Answered(exchange) => {
                opened.close();
                (host.log)(exchange);
                Ok(())
            }
            Step::Finish => client.finish(),
            Step::Close => return,
        };
        if done.is_err() {
            conversation.broken();
        }
    }
}

#[cfg(test)]
mod tests;
