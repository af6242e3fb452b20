//! Names of policies that came from places of one name: by as many words of the place as tell them apart.

use crate::place::prefix_and_place;
use crate::spec::PolicySpec;

/// Names policies that share a name with another by words of their places.
pub(crate) fn own_names(opened: Vec<(PolicySpec, Vec<String>)>) -> Vec<PolicySpec> {
    let (policies, words): (Vec<PolicySpec>, Vec<Vec<String>>) = opened.into_iter().unzip();
    let names: Vec<&str> = policies.iter().map(PolicySpec::name).collect();
    match told_apart(&names, &words) {
        Some(names) => {
            let named = policies.into_iter().zip(names);
            named.map(|(policy, name)| policy.named(Some(&name))).collect()
        }
        None => policies,
    }
}

/// The name of each, where those that share one and have a place are named by the last words of it, after the prefix that their name
/// begins with; as many words as tell all of them apart. None where no number of words does.
fn told_apart(names: &[&str], words: &[Vec<String>]) -> Option<Vec<String>> {
    let shares = |name: &str| names.iter().filter(|other| **other == name).count() > 1;
    let places = || names.iter().zip(words);
    let is_renamed: Vec<bool> = places()
        .map(|(name, words)| !words.is_empty() && shares(name))
        .collect();
    let longest = words.iter().map(Vec::len).max().unwrap_or(0);
    let names_of = |num_words: usize| -> Vec<String> {
        let name = |((name, words), is_renamed): ((&&str, &Vec<String>), &bool)| {
            if !is_renamed {
                return (*name).to_owned();
            }
            let tail = words[words.len().saturating_sub(num_words)..].join("/");
            format!("{}{tail}", prefix_and_place(name).0.unwrap_or_default())
        };
        places().zip(&is_renamed).map(name).collect()
    };
    let are_apart = |names: &Vec<String>| {
        let count = |name: &String| names.iter().filter(|other| *other == name).count();
        let mut own = names
            .iter()
            .zip(&is_renamed)
            .filter(|(_, is_renamed)| **is_renamed);
        own.all(|(name, _)| count(name) == 1)
    };
    (1..=longest).map(names_of).find(are_apart)
}
