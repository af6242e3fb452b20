//! Where two configurations differ, for the message that refuses the one where the other was used.

use toml::{Table, Value};

/// Most keys that are named; of the others the number is given.
const NUM_TOLD: usize = 8;

/// The keys with different values, as in `train.num_updates = 200, there 4`; empty where the two are the same.
#[must_use]
pub fn in_words(here: &Table, there: &Table) -> String {
    let mut found = Vec::new();
    compare("", here, there, &mut found);
    let num_untold = found.len().saturating_sub(NUM_TOLD);
    found.truncate(NUM_TOLD);
    if num_untold > 0 {
        found.push(format!("and {num_untold} more"));
    }
    found.join("; ")
}

/// Adds what differs in tables whose dotted key is `prefix`, with a dot at its end.
fn compare(prefix: &str, here: &Table, there: &Table, found: &mut Vec<String>) {
    let only_there = there.keys().filter(|key| !here.contains_key(*key));
    for name in here.keys().chain(only_there) {
        let key = format!("{prefix}{name}");
        match (here.get(name), there.get(name)) {
            (Some(Value::Table(here)), Some(Value::Table(there))) => {
                compare(&format!("{key}."), here, there, found);
            }
            (here, there) if here != there => {
                let shown = |value: Option<&Value>| value.map_or("left out".to_string(), Value::to_string);
                found.push(format!("{key} = {}, there {}", shown(here), shown(there)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(here: &str, there: &str) -> String {
        in_words(&toml::from_str(here).unwrap(), &toml::from_str(there).unwrap())
    }

    #[test]
    fn every_key_that_differs_is_told_with_both_values() {
        assert_eq!(words("a = 1\n[t]\nb = 2", "a = 1\n[t]\nb = 2"), "");
        assert_eq!(
            words("a = 1\n[t]\nb = 'x'\nc = 1", "a = 2\n[t]\nb = 'y'\nd = 1.5"),
            "a = 1, there 2; t.b = \"x\", there \"y\"; t.c = 1, there left out; t.d = left out, there 1.5"
        );
        let many: Vec<String> = (10..20).map(|number| format!("k{number} = 1")).collect();
        let told = words(&many.join("\n"), "");
        assert!(told.ends_with("; and 2 more") && told.contains("k17"), "{told}");
    }
}
