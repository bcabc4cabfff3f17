//! Tokens that were refused: counted by reason, and told in the log once a minute for each peer.

use std::{collections::HashMap, net::IpAddr};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use redial_proto::TokenId;
use strum::{IntoStaticStr, VariantArray};

/// Peers that have a line of their own in a minute; the others share one. Whoever has many addresses must not fill the log.
const PEERS: usize = 100;

/// Why a request has no valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Reason {
    Missing,
    /// What it has does not look like one.
    Malformed,
    Unknown,
    /// Its secret is not that of its id.
    WrongSecret,
    Expired,
    Revoked,
    /// The session of a browser has ended, or never was.
    NoSession,
    /// The access file does not name its user.
    NoUser,
}

/// A refusal, as a problem carries it to where it is counted.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) token: Option<TokenId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Labels {
    reason: &'static str,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Refusals {
    counts: Family<Labels, Counter>,
    /// Of this minute; `None`: of all peers that are too many.
    peers: Mutex<HashMap<Option<IpAddr>, OfPeer>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct OfPeer {
    counts: [u64; Reason::VARIANTS.len()],
    token: Option<TokenId>,
}

impl Refusals {
    pub(crate) fn add(&self, peer: Option<IpAddr>, refusal: Refusal) {
        let Refusal { reason, token } = refusal;
        self.counts.get_or_create(&Labels { reason: reason.into() }).inc();
        // A browser that has not signed in yet is nothing to warn of.
        if reason == Reason::Missing {
            return;
        }
        let mut peers = self.peers.lock();
        let peer = peer.filter(|_| peers.len() < PEERS || peers.contains_key(&peer));
        let found = peers.entry(peer).or_default();
        found.counts[reason as usize] += 1;
        found.token = token.or(found.token.take());
    }

    /// Returns the counts by reason, since the start.
    pub(crate) fn counts(&self) -> Family<Labels, Counter> {
        self.counts.clone()
    }

    /// Warns of each peer whose tokens were refused since the last time.
    pub(crate) fn warn(&self) {
        for (peer, OfPeer { counts, token }) in std::mem::take(&mut *self.peers.lock()) {
            let peer = peer.map_or_else(|| "others".to_owned(), |peer| peer.to_string());
            let (refused, reasons) = (counts.iter().sum::<u64>(), in_words(&counts));
            let token = token.as_ref().map(TokenId::as_str);
            tracing::warn!(peer, refused, reasons, last_token = token, "Refused tokens of a peer");
        }
    }
}

fn in_words(counts: &[u64]) -> String {
    let counted = Reason::VARIANTS.iter().zip(counts).filter(|(_, count)| **count > 0);
    let words = counted.map(|(reason, count)| format!("{} {count}", <&str>::from(reason)));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use redial_proto::ApiToken;

    use super::*;

    fn peer(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn each_peer_has_one_entry_until_it_is_told_and_too_many_share_one() {
        let refusals = Refusals::default();
        let token = ApiToken::of_random(&[1; 40]).id;
        for reason in [Reason::Unknown, Reason::Unknown, Reason::Revoked, Reason::Missing] {
            let token = (reason == Reason::Revoked).then(|| token.clone());
            refusals.add(Some(peer(0)), Refusal { reason, token });
        }
        refusals.add(Some(peer(0)), Refusal { reason: Reason::Malformed, token: None });
        for n in 1..=1_000 {
            refusals.add(Some(peer(n)), Refusal { reason: Reason::Unknown, token: None });
        }
        {
            let peers = refusals.peers.lock();
            assert_eq!(peers.len(), PEERS + 1);
            assert_eq!(in_words(&peers[&Some(peer(0))].counts), "malformed 1, unknown 2, revoked 1");
            assert_eq!(peers[&Some(peer(0))].token, Some(token));
            assert_eq!(peers[&None].counts.iter().sum::<u64>(), 1_000 - (PEERS as u64 - 1));
        }
        refusals.warn();
        assert!(refusals.peers.lock().is_empty(), "told once");
        assert_eq!(refusals.counts.get_or_create(&Labels { reason: "unknown" }).get(), 1_002);
        assert_eq!(refusals.counts.get_or_create(&Labels { reason: "missing" }).get(), 1);
    }
}
