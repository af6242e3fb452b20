//! What is known for certain of a tree that routes: properties of every decision that it will ever take.

use pleach_scheduler::tree::{RowSet, Tree, Verdict};

use crate::llm::columns::SCHEMA;

/// Shares of the targets that are asked about, the largest first. *Ours.*
const SHARES: [f32; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// The same of replicas that are late, the least first.
const LATE: [f32; 8] = [1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0];
/// Both believed times, as a router orders by them and as they are believed now.
const BELIEFS: [(&str, [&str; 2]); 2] = [
    ("now", ["ttft_now_share", "tpot_now_share"]),
    ("with all that was sent", ["ttft_share", "tpot_share"]),
];
/// Places of the kinds of rows.
const SEND: usize = 0;
const REFUSE: usize = 1;

/// Sentences, each with whether it holds: what all trees are asked, and which requests a tree refuses.
#[must_use]
pub fn certificates(tree: &Tree) -> Vec<(String, Verdict)> {
    let certificates = tree.certify().into_iter();
    let mut all: Vec<(String, Verdict)> = certificates
        .map(|certificate| (certificate.property.to_string(), certificate.verdict))
        .collect();
    all.extend(BELIEFS.iter().filter_map(|belief| never_refused(tree, belief)));
    all.extend(BELIEFS.iter().filter_map(|belief| always_refused(tree, belief)));
    all
}

/// Numbers of the columns of a belief, where the tree reads one of them.
fn columns(tree: &Tree, names: [&str; 2]) -> Option<[usize; 2]> {
    let is_read = tree.features().iter().any(|read| names.contains(read));
    let [ttft, tpot] = names.map(|name| SCHEMA.joined_index(name));
    is_read.then_some([ttft?, tpot?])
}

/// The largest share of both targets within which a replica goes before refusing; else a pair that shows that none does.
fn never_refused(tree: &Tree, (words, names): &(&str, [&str; 2])) -> Option<(String, Verdict)> {
    let columns = columns(tree, *names)?;
    let ask = |share: f32| {
        let within = columns.map(|column| (column, 0.0, share));
        let (refuse, send) = sets(&within);
        tree.never(&refuse, &send, |refuse, send| refuse >= send)
    };
    let said = |share: f32| {
        format!(
            "nothing is refused while a replica's believed times {words} are within {share} of both targets"
        )
    };
    Some(first_proved(&SHARES, ask, said))
}

/// The least share beyond which, of either target, a replica never goes before refusing.
fn always_refused(tree: &Tree, (words, names): &(&str, [&str; 2])) -> Option<(String, Verdict)> {
    let columns = columns(tree, *names)?;
    let ask = |share: f32| {
        let of = |column: usize| {
            let within = [(column, share, f32::MAX)];
            let (refuse, send) = sets(&within);
            tree.never(&send, &refuse, |send, refuse| send >= refuse)
        };
        match of(columns[0]) {
            Verdict::Proved => of(columns[1]),
            other => other,
        }
    };
    let said = |share: f32| {
        format!("no replica is sent to whose believed time {words} is beyond {share} of a target")
    };
    Some(first_proved(&LATE, ask, said))
}

fn sets<'a>(within: &'a [(usize, f32, f32)]) -> (RowSet<'a>, RowSet<'a>) {
    let refuse = RowSet {
        kind: REFUSE,
        within: &[],
    };
    let send = RowSet { kind: SEND, within };
    (refuse, send)
}

/// The first share of which it is proved, or else the last with why not.
fn first_proved(
    shares: &[f32],
    ask: impl Fn(f32) -> Verdict,
    said: impl Fn(f32) -> String,
) -> (String, Verdict) {
    let mut last = (String::new(), Verdict::Open(String::new()));
    for share in shares {
        last = (said(*share), ask(*share));
        if last.1 == Verdict::Proved {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests;
