//! Words that earlier versions took, or that a program with the laboratory takes, and what does the same: a command, a setting, a flag
//! or a form that is gone is refused as any unknown one, with the way on as its hint.
//!
//! # What is deliberately not here
//! Policies (`pleach_policies`) and what daemons take, which answer for themselves.

/// Where a word stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A command.
    Command,
    /// A flag, without its dashes.
    Flag,
    /// A form of `pleach export --to`.
    Form,
    /// A key of settings.toml.
    Key,
}

/// Words as they were written, by where they stood, and what to do instead.
const REMOVED: [(Place, &[(&str, &str)]); 4] = [
    (
        Place::Command,
        &[
            (
                "serve",
                "Worlds are what --workload says now: pleach evaluate --workload requests, calls or service, pleach distill --search, pleach train \
         and pleach workload describe or write with the same; settings go to --set KEY=VALUE (pleach workload settings requests).",
            ),
            ("features", "It is pleach policies --features now."),
            ("status", "It is pleach sweep gather --status now."),
            ("certify", "pleach distill check FILE certifies now."),
            ("ablate", "It is pleach distill check FILE --ablate now."),
            ("guard", "It is pleach distill check FILE --after now."),
            ("drift", "It is pleach distill check FILE --drift now."),
            ("bundle", "It is pleach distill seal FILE --bundle DIR now."),
            ("suite", WITHOUT_LAB),
            ("tournament", WITHOUT_LAB),
            ("reproduce", WITHOUT_LAB),
            ("bench", WITHOUT_LAB),
            ("stability", FITS),
            ("frontier", FRONTIER),
        ],
    ),
    (
        Place::Flag,
        &[
            (
                "html",
                "Of verify it is gone: pleach watch FILE --out PAGE draws a record, at any time and with every policy.",
            ),
            ("mixed-types", MIXED),
            ("mixed_types", MIXED),
            ("belief-errors", REALISTIC),
            ("stop-grace-s", REALISTIC),
            (
                "all",
                "It is gone: the script lists the units that have no result. Another --out begins anew.",
            ),
            (
                "no-gather",
                "It is gone: sbatch FILE submits the array alone, bash FILE also the job that gathers.",
            ),
            (
                "namespace",
                "It is gone: kubectl apply --namespace NAME -f FILE does the same.",
            ),
            ("mount", VOLUME),
            ("sub-path", VOLUME),
            ("fits", FITS),
            ("frontier", FRONTIER),
        ],
    ),
    (
        Place::Form,
        &[
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
        ],
    ),
    (
        Place::Key,
        &[
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
                "train.average_reward is gone: a long time constant does as well (train.horizon_s = 1e6). Take \
         the key out.",
            ),
        ],
    ),
];
/// Asked only where the program does not have them.
const WITHOUT_LAB: &str = "It is of the laboratory, and this program was built without its feature `lab`: cargo build --release -p pleach-cli has it.";
const MIXED: &str = "It is --actions mixed_types now: actions = [\"mixed_types\"] in a grid.";
const REALISTIC: &str =
    "It is part of --realistic now; grids and site.toml have it alone: belief_errors, stop_grace_s.";
const VOLUME: &str =
    "It is gone: a container sees all of the volume at /sweep; the file can be edited (mountPath, subPath).";
const FITS: &str = "It is gone: a sweep with command = \"distill\" and seeds = 5 plays the trees of five seeds side by side.";
const FRONTIER: &str =
    "It is gone: a sweep with command = \"distill\" and a grid of leaves plays a tree of each size.";

/// What to do in place of a word that earlier versions took; none of other words.
#[must_use]
pub fn instead(place: Place, word: &str) -> Option<&'static str> {
    let (_, words) = REMOVED.iter().find(|(stood, _)| *stood == place)?;
    let (_, instead) = words.iter().find(|(removed, _)| *removed == word)?;
    Some(instead)
}

/// The same of the key that a message of serde calls unknown.
#[must_use]
pub fn instead_of_key(message: &str) -> Option<&'static str> {
    let (_, rest) = message.split_once("unknown field `")?;
    instead(Place::Key, rest.split('`').next()?)
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
