//! The weights of factors that are in force, as `sprio` prints them: where a `slurm.conf` has none, for its lines are in a file that it
//! includes, and as a check where it has them.
//!
//! # Source
//! Slurm 22.05.8. Without a format `sprio -w` cuts the weights of TRES after 20 characters.

use std::collections::BTreeMap;

use super::{Conf, is_null, printed};

/// The command that prints them.
const SHOW_WEIGHTS: &str = "sprio -w -o '%i|%A|%F|%J|%P|%Q|%T'";

/// Columns and the keys of `slurm.conf`.
const KEYS: [(&str, &str); 6] = [
    ("age", "PriorityWeightAge"),
    ("fairshare", "PriorityWeightFairshare"),
    ("jobsize", "PriorityWeightJobSize"),
    ("partition", "PriorityWeightPartition"),
    ("qos", "PriorityWeightQOS"),
    ("tres", "PriorityWeightTRES"),
];

/// A weight, or some by name, in one form.
fn in_one_form(text: &str) -> BTreeMap<String, String> {
    let one = |part: &str| {
        let (name, number) = part.split_once('=').unwrap_or(("", part));
        let number = number
            .parse::<f64>()
            .map_or_else(|_| number.to_owned(), |number| number.to_string());
        (name.to_ascii_lowercase(), number)
    };
    text.split(',').map(|part| one(part.trim())).collect()
}

/// Lines of `slurm.conf` with the weights that `sprio` printed and the file does not have.
///
/// # Errors
/// A text that is no such table; a weight, or the kind of priority, that the file has otherwise.
pub fn missing_weights(conf: &Conf, text: &str) -> Result<Vec<String>, String> {
    let rows = printed(text);
    let row = rows.iter().find(|row| {
        let is_it = row.get("jobid").is_some_and(|word| word.trim() == "Weights");
        is_it && KEYS.iter().all(|(column, _)| row.contains_key(*column))
    });
    let Some(row) = row else {
        return Err(format!("it has no row of weights: print it by `{SHOW_WEIGHTS}`"));
    };
    let differs = |key: &str, here: &str, own: &str| {
        Err(format!(
            "{key} is {here} here and {own} in slurm.conf: give the slurm.conf that the controller runs with, or print the \
             weights anew by `{SHOW_WEIGHTS}`"
        ))
    };
    if let Some(own) = conf.value("PriorityType")
        && !own.ends_with("multifactor")
    {
        return differs("PriorityType", "priority/multifactor", own);
    }
    let mut lines = Vec::new();
    for (column, key) in KEYS {
        let here = row.get(column).map_or("", |text| text.trim());
        let here = if is_null(here) { "0" } else { here };
        match conf.value(key) {
            Some(own) if in_one_form(own) != in_one_form(here) => return differs(key, here, own),
            None if here != "0" => lines.push(format!("{key}={here}")),
            _ => {}
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Slurm 22.05.8 printed it.
    const TEXT: &str = "JOBID|AGE|FAIRSHARE|JOBSIZE|PARTITION|QOS|TRES\n\
                        Weights|1000|10000|500|300|0|CPU=1000,Mem=2000,GRES/gpu=3000\n";

    fn read(lines: &str, text: &str) -> Result<Vec<String>, String> {
        let conf = format!("NodeName=n1\nPartitionName=p Nodes=ALL\n{lines}");
        missing_weights(&Conf::of_text(&conf).unwrap(), text)
    }

    #[test]
    fn weights_that_the_file_lacks_are_those_that_are_printed() {
        let own = "PriorityWeightAge=1000\nPriorityWeightTRES=cpu=1000,mem=2000.0,gres/gpu=3000\n";
        assert_eq!(
            read(own, TEXT).unwrap(),
            [
                "PriorityWeightFairshare=10000",
                "PriorityWeightJobSize=500",
                "PriorityWeightPartition=300"
            ]
        );
        let none = TEXT.replace("CPU=1000,Mem=2000,GRES/gpu=3000", "(null)");
        assert_eq!(
            read(own, &none).unwrap_err().find("PriorityWeightTRES is 0 here"),
            Some(0)
        );
        assert_eq!(read("PriorityWeightTRES=0\n", &none).unwrap().len(), 4);
    }

    #[test]
    fn what_contradicts_the_file_or_is_no_such_table_is_refused() {
        for (own, text, words) in [
            (
                "PriorityWeightAge=999\n",
                TEXT,
                "PriorityWeightAge is 1000 here and 999 in slurm.conf",
            ),
            ("PriorityWeightQOS=5\n", TEXT, "PriorityWeightQOS is 0 here and 5"),
            (
                "PriorityWeightTRES=CPU=1000\n",
                TEXT,
                "PriorityWeightTRES is CPU=1000,Mem",
            ),
            (
                "PriorityType=priority/basic\n",
                TEXT,
                "PriorityType is priority/multifactor here",
            ),
            ("", "", "no row of weights"),
            (
                "",
                "JOBID PARTITION   PRIORITY       SITE\n Weights\n",
                "sprio -w -o",
            ),
            (
                "",
                "JOBID|AGE|FAIRSHARE|JOBSIZE|PARTITION|QOS|TRES\n7|1|2|3|4|5|\n",
                "no row of weights",
            ),
        ] {
            let told = read(own, text).unwrap_err();
            assert!(told.contains(words), "{told}");
        }
    }
}
