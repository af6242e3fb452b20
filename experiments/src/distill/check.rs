//! A tree that was edited against the version before: what it says, what is certain of it, and how it schedules.

use std::fmt::Write as _;

use pleach_env::EnvConfig;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::tree::{Certificate, Tree};
use serde::Serialize;
use std::mem::discriminant;

use super::side_by_side::{PartOver, side_by_side};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::stats::Ratio;
use crate::judge::{REPORTED, in_words};
use crate::progress::Watcher;

/// A difference of two versions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// Version of this form.
    pub schema: u32,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
    /// Whether both decide alike by what their files say.
    pub is_same: bool,
    /// Lines of the text of the version before that the other lacks.
    pub removed: Vec<String>,
    /// Lines of the text of the new version that the one before lacks.
    pub added: Vec<String>,
    /// Properties whose verdict is another: in words before, in words now.
    pub certificates: Vec<[String; 2]>,
    /// The new version over the one before, part by part.
    pub parts: Vec<PartOver>,
}

/// Compares two versions; draws lists of their own and runs both on them.
///
/// # Errors
/// A list that cannot be drawn, a run that fails.
pub fn check(
    env: &EnvConfig,
    (before, after): (&Tree, &Tree),
    num_lists: usize,
    seed: u64,
    watcher: &Watcher,
) -> Result<CheckReport, Error> {
    let policies = [
        PolicySpec::tree("before", before.clone()),
        PolicySpec::tree("after", after.clone()),
    ];
    let drawn = ((seed, "distill/check"), num_lists);
    let mut parts = side_by_side(env, &REPORTED, drawn, &policies, watcher)?;
    let (old, new) = (before.to_text(), after.to_text());
    Ok(CheckReport {
        schema: 1,
        num_lists,
        is_same: before.hash() == after.hash(),
        removed: lacking(&old, &new),
        added: lacking(&new, &old),
        certificates: changed(&before.certify(), &after.certify()),
        parts: parts.pop().unwrap_or_default(),
    })
}

/// Lines of one text that the other has not, or not as often.
fn lacking(text: &str, other: &str) -> Vec<String> {
    let mut left: Vec<&str> = other.lines().collect();
    let mut lacking = Vec::new();
    for line in text.lines() {
        match left.iter().position(|other| *other == line) {
            Some(place) => drop(left.remove(place)),
            None => lacking.push(line.to_string()),
        }
    }
    lacking
}

/// Certificates whose verdict is of another kind, matched by what they say; leaves that nothing comes to are new ones or gone.
fn changed(before: &[Certificate], after: &[Certificate]) -> Vec<[String; 2]> {
    let kind = |own: &Certificate| discriminant(&own.verdict);
    let words = |own: &Certificate| own.in_words(FeatureSchema::current());
    let mut changes = Vec::new();
    for own in before {
        let other = after.iter().find(|other| other.property == own.property);
        if other.map(kind) != Some(kind(own)) {
            let now = other.map_or_else(|| "not said of this tree".into(), words);
            changes.push([words(own), now]);
        }
    }
    for own in after {
        if before.iter().all(|other| other.property != own.property) {
            changes.push(["not said of this tree".into(), words(own)]);
        }
    }
    changes
}

/// What an interval says of a ratio where less is better.
fn verdict(ratio: Option<&Ratio>) -> &'static str {
    match ratio {
        Some(Ratio { high: Some(high), .. }) if *high < 1.0 => "better",
        Some(Ratio { low: Some(low), .. }) if *low > 1.0 => "worse",
        Some(ratio) if ratio.low.is_some() => "level",
        _ => "not known",
    }
}

impl CheckReport {
    /// All of it in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if self.is_same {
            text.push_str("Both files decide alike.\n");
        }
        for (sign, lines) in [("-", &self.removed), ("+", &self.added)] {
            for line in lines {
                let _ = writeln!(text, "{sign} {line}");
            }
        }
        if self.certificates.is_empty() {
            text.push_str("\nNo verdict of a certificate is another.\n");
        }
        for [before, after] in &self.certificates {
            let _ = write!(text, "\nbefore: {before}\nnow:    {after}\n");
        }
        text.push_str("\n| part | average JCT | | p99 JCT | mean slowdown | longest wait |\n|---|---:|---|---:|---:|---:|\n");
        let words = |ratio: &Option<Ratio>| ratio.as_ref().map_or_else(|| "no figure".into(), in_words);
        for own in &self.parts {
            let (jct, p99, slowdown) = (words(&own.jct), words(&own.p99), words(&own.slowdown));
            let longest = crate::evaluate::metric::show_seconds(own.longest_wait_s);
            let word = verdict(own.jct.as_ref());
            let _ = writeln!(
                text,
                "| {} | {jct} | {word} | {p99} | {slowdown} | {longest} |",
                own.part
            );
        }
        text.push_str("\nThe new version over the one before on the same lists, with paired 95 % intervals; less is better.\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use pleach_scheduler::tree::Node;

    fn reference() -> Tree {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/PhillyGang-v1-tree.json"
        );
        Tree::load(path.as_ref()).unwrap()
    }

    #[test]
    fn an_edit_is_named_judged_and_held_to_what_was_certain_before() {
        let env = env_of("Pleach/PhillyGang-v1", Some(60), None).unwrap();
        let tree = reference();
        let same = check(&env, (&tree, &tree), 3, 5, &Watcher::silent()).unwrap();
        assert!(
            same.is_same && same.removed.is_empty() && same.added.is_empty() && same.certificates.is_empty()
        );
        assert!(
            same.parts
                .iter()
                .all(|part| part.jct.as_ref().unwrap().mean == 1.0)
        );
        assert!(same.markdown().starts_with("Both files decide alike.\n"));
        // Scores turned round: the last comes first, and what was proved of waiting is refuted.
        let turned = tree.nodes().iter().map(|node| match *node {
            Node::Leaf {
                id,
                score,
                samples,
                weight,
            } => Node::Leaf {
                id,
                score: -score,
                samples,
                weight,
            },
            split => split,
        });
        let edited = Tree::new(tree.meta().clone(), &turned.collect::<Vec<_>>()).unwrap();
        let report = check(&env, (&tree, &edited), 3, 5, &Watcher::silent()).unwrap();
        assert!(!report.is_same && !report.added.is_empty() && !report.removed.is_empty());
        assert!(!report.certificates.is_empty());
        let text = report.markdown();
        assert!(
            text.contains("\nbefore: proved: ") && text.contains("\nnow:    refuted: "),
            "{text}"
        );
        assert!(text.contains("| worse |"), "{text}");
    }
}
