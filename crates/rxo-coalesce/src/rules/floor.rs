//! Conditions that rules cannot waive.
//!
//! Rules are code of the user, and may return any decision. The floor enforces the engine's guarantees: it
//! permits a merge only if a receiver of merged packets still reads the result correctly. For a policy whose
//! aggregates can be segmented into the original packets, the floor is the policy itself.

use rxo_wire::TcpFlags;

use crate::{
    AckRule, Candidate, CeRule, EceRule, FinRule, Held, OptionRule, PayloadRule, Policy, PshRule,
    Verdict, WindowRule, verdict,
};

/// The floor: the most permissive policy that rules with a given policy may apply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor(Policy);

impl Floor {
    /// Creates the floor of rules whose policy is `policy`.
    pub(super) const fn of(policy: &Policy) -> Self {
        if policy.is_resegmentable() {
            return Self(Policy { coalesce: true, ..*policy });
        }
        Self(Policy {
            coalesce: true,
            max_segments: u16::MAX,
            ack: AckRule::Latest,
            window: WindowRule::Latest,
            options: OptionRule::Identical,
            psh: PshRule::Keep,
            fin: FinRule::AppendThenClose,
            ece: EceRule::Equal,
            ce: CeRule::Equal,
            needs_df: false,
            zero_echo: true,
            ..*policy
        })
    }

    /// Returns the policy whose static rules apply to single packets.
    pub(super) const fn of_candidates(&self) -> &Policy {
        &self.0
    }

    /// Returns `true` if `next` may be appended to `run`, whose last segment is `last`.
    pub(super) fn joins(&self, run: &Held, last: &Candidate<'_>, next: &Candidate<'_>) -> bool {
        let Self(policy) = self;
        let has_one_size = policy.payload == PayloadRule::SameThenShorter;
        let is_over = (has_one_size && run.last_payload_bytes < run.gso_size)
            || last.tcp.flags.contains(TcpFlags::FIN)
            || (policy.psh != PshRule::Keep && last.tcp.flags.contains(TcpFlags::PSH));
        // Timestamps may differ unless the policy is resegmentable; other options never.
        let options = match policy.is_resegmentable() {
            true => OptionRule::Identical,
            false => OptionRule::TimestampOnly,
        };
        let policy = Policy { options, ..*policy };
        !is_over && matches!(verdict(Some((run, last)), next, &policy), Verdict::Append(_))
    }
}
