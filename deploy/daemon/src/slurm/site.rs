//! What is asked of Slurm once: its partitions, and whether it takes an order.

use pleach_scheduler::Problem;

use crate::error::Error;
use crate::slurm::command::Commands;

const SINFO: &str = "sinfo";

/// Characters of a list of partitions that are shown.
const LIST_MAX: usize = 300;

/// The partition that is driven: the one of this name, where Slurm has it or does not answer; else the one that it calls the
/// default.
///
/// # Errors
/// A name that no partition has; as [`default_partition`].
pub fn partition(commands: &Commands, named: Option<&str>) -> Result<String, Error> {
    let Some(name) = named else {
        return default_partition(commands);
    };
    // Where it does not answer, rounds fail until it does and is asked again.
    if let Ok(names) = partitions(commands) {
        check(name, &names)?;
    }
    Ok(name.to_owned())
}

/// The partition that Slurm calls the default one.
///
/// # Errors
/// A command that fails or takes too long; no default partition.
pub fn default_partition(commands: &Commands) -> Result<String, Error> {
    let text = partitions(commands)?;
    let found = text.iter().find_map(|name| name.strip_suffix('*'));
    found.map(str::to_owned).ok_or_else(|| {
        let first = text.first().map_or("", String::as_str);
        Error::garbage(SINFO, 1, first, "names no default partition; set `partition`")
    })
}

/// Whether there is a partition of this name.
///
/// # Errors
/// There is none; a command that fails or takes too long.
pub(super) fn check_partition(commands: &Commands, name: &str) -> Result<(), Error> {
    check(name, &partitions(commands)?)
}

/// Names of partitions as `sinfo` prints them, the default one with a star.
fn partitions(commands: &Commands) -> Result<Vec<String>, Error> {
    let text = commands.run(SINFO, &["-h", "-a", "-o", "%P"])?;
    read_partitions(&text)
}

fn read_partitions(text: &str) -> Result<Vec<String>, Error> {
    let is_name =
        |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '|' || c == ':');
    let name = |(row, line): (usize, &str)| match line.trim() {
        name if is_name(name) => Ok(name.to_owned()),
        _ => Err(Error::garbage(SINFO, row + 1, line, "names no partition")),
    };
    text.lines().enumerate().map(name).collect()
}

fn check(name: &str, names: &[String]) -> Result<(), Error> {
    let names: Vec<&str> = names.iter().map(|name| name.trim_end_matches('*')).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let list: String = names.join(", ").chars().take(LIST_MAX).collect();
    let hint = "name one of Slurm's (`sinfo -a`), or none for its default one";
    Err(Problem::new("partition", format!("{name:?}"), format!("one of {list}"), hint).into())
}

/// A value of what `scontrol show config` printed; none where it has no such key.
pub(super) fn config_value(text: &str, key: &str) -> Option<String> {
    let of_line = |line: &str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(of_line)
}

/// Whether Slurm takes an order from outside, by what it says of its configuration: none where it does not answer, else the weights
/// of what may turn two neighbours round, summed.
///
/// # Errors
/// A Slurm whose priorities are none that factors add up to.
pub fn takes_order(commands: &Commands) -> Result<Option<u64>, Error> {
    let Ok(text) = commands.run("scontrol", &["show", "config"]) else {
        return Ok(None);
    };
    let value = |key: &str| config_value(&text, key);
    let Some(kind) = value("PriorityType") else {
        return Ok(None);
    };
    if kind != "priority/multifactor" {
        let hint = "set it in slurm.conf and restart slurmctld (its weights may stay 0)";
        return Err(Problem::new("PriorityType", kind, "priority/multifactor", hint).into());
    }
    let plugin = value("PrioritySiteFactorPlugin").unwrap_or_default();
    if !matches!(plugin.as_str(), "" | "(null)" | "site_factor/none") {
        let hint = "it would overwrite the order: take it out of slurm.conf";
        return Err(Problem::new("PrioritySiteFactorPlugin", plugin, "none", hint).into());
    }
    let weights = ["Age", "Assoc", "FairShare", "JobSize", "Partition"];
    let weight =
        |name: &&str| value(&format!("PriorityWeight{name}")).and_then(|text| text.parse::<u64>().ok());
    Ok(Some(
        weights.iter().filter_map(weight).fold(0, u64::saturating_add),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_is_not_there_is_refused_with_those_that_are() {
        let names = read_partitions("debug\nmain*\n").unwrap();
        assert!(read_partitions("slurm_load_partitions: Zero Bytes were transmitted").is_err());
        assert!(check("main", &names).is_ok() && check("debug", &names).is_ok());
        let said = check("gpu", &names).unwrap_err().to_string();
        assert!(
            said.contains("partition = \"gpu\"") && said.contains("one of debug, main"),
            "{said}"
        );
    }
}
