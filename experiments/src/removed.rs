//! Words that earlier versions took, and what does the same now: a setting, a flag or a form that is gone is refused as any unknown
//! one, with the way on as its hint.
//!
//! # What is deliberately not here
//! Policies (`pleach_policies`) and what daemons take, which answer for themselves.

/// A word as it was written, and what to do instead.
const REMOVED: [(&str, &str); 9] = [
    (
        "gradients",
        "ppo.gradients and imitation.gradients are gone: the CPU takes plain gradients, another --device Burn's. Take the key out.",
    ),
    (
        "entities",
        "env.entities is gone: networks that also saw running jobs and groups of nodes were no better. Take the key out, and train \
         anew.",
    ),
    (
        "overlap",
        "train.overlap is gone: an update of staleness cost more than the time was worth. Take the key out.",
    ),
    (
        "average_reward",
        "train.average_reward is gone: a long time constant does as well (train.horizon_s = 1e6, the default of pleach train). Take \
         the key out.",
    ),
    (
        "lua",
        "That form is gone: --to c or --to python is the same tree, to translate from.",
    ),
    (
        "sql",
        "That form is gone: --to python has the tree's conditions, for a CASE of your own.",
    ),
    (
        "mermaid",
        "That form is gone: pleach policies --show TREE --html FILE draws the tree.",
    ),
    (
        "markdown",
        "That form is gone: pleach policies --show TREE prints the rules.",
    ),
    (
        "sklearn",
        "That form is gone: --to onnx runs in Python with the same bits, and --to python needs no library.",
    ),
];

/// What to do in place of a word that earlier versions took; none of other words.
#[must_use]
pub fn instead(word: &str) -> Option<&'static str> {
    let removed = REMOVED.into_iter().find(|(removed, _)| *removed == word);
    removed.map(|(_, instead)| instead)
}

/// The same of the key that a message of serde calls unknown.
#[must_use]
pub fn instead_of_key(message: &str) -> Option<&'static str> {
    let (_, rest) = message.split_once("unknown field `")?;
    instead(rest.split('`').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_gone_is_found_in_the_message_and_others_are_not() {
        let said = instead_of_key("unknown field `entities`, expected one of `env`").unwrap();
        assert!(said.contains("Take the key out"), "{said}");
        for other in [
            "unknown field `entity`, expected `entities`",
            "invalid type: string",
        ] {
            assert_eq!(instead_of_key(other), None, "{other}");
        }
    }
}
