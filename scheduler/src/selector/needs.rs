//! What a selector asks the enumeration for, and which of it each rule is shown.
//!
//! The pass is opened once, before anybody knows which leaves it will meet, so it offers what any of the rules wants. A rule is then
//! shown only the kinds of action that it asks for itself: `sjf` wants every start, and would put jobs beside others, or start
//! them at half their size, only because another leaf names a rule that does. More *jobs* than it asks for it may see: it takes
//! the first under its own order.

use crate::action_set::ActionKind;
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::Cluster;
use crate::heuristics::by_name;
use crate::policy::Needs;

/// The needs of all rules together; the cluster's features are always filled. Unknown names, which a selector has none of, ask for
/// nothing.
///
/// Where quotas bind, tenants are held to their order only if all rules ask for that: `fifo` beside others then starts a job of a
/// tenant whose first has no room.
pub(super) fn union_of(rules: &[&str]) -> Needs {
    let all = rules.iter().filter_map(|rule| by_name(rule).ok());
    let union = all
        .map(|rule| rule.needs())
        .reduce(|one, other| both(&one, &other));
    Needs {
        observation: true,
        ..union.unwrap_or(Needs::full())
    }
}

fn both(one: &Needs, other: &Needs) -> Needs {
    Needs {
        lenses: one.lenses.union(other.lenses),
        heads: one.heads.max(other.heads),
        tenants_in_order: one.tenants_in_order && other.tenants_in_order,
        fitting: one.fitting.max(other.fitting),
        templates: if one.templates == other.templates {
            one.templates
        } else {
            Needs::full().templates
        },
        actions: one.actions.union(other.actions),
        observation: true,
        tick: match (one.tick, other.tick) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        },
    }
}

/// Whether a rule with these needs asks for candidates of such a kind.
pub(super) fn asks_for(needs: &Needs, cluster: &Cluster, candidate: &Candidate) -> bool {
    let asks = |kind| needs.actions.contains(kind);
    let Some(job) = candidate.job else {
        return true;
    };
    match candidate.kind {
        CandidateKind::Hold => true,
        CandidateKind::Preempt => asks(ActionKind::Preempt),
        CandidateKind::Reserve => {
            let fits_now = cluster.fitting_types(cluster.demand(job)) != 0;
            asks(ActionKind::Reserve) && (!fits_now || asks(ActionKind::WaitForType))
        }
        CandidateKind::Start => {
            let asked_gpus = cluster.job(job).request.num_gpus;
            let is_resized = candidate.facts.is_some_and(|facts| facts.num_gpus != asked_gpus);
            (candidate.partner.is_none() || asks(ActionKind::Share))
                && (candidate.granted.is_none() || asks(ActionKind::GrantCores))
                && (!is_resized || asks(ActionKind::Resize))
        }
    }
}
