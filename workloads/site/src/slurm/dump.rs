//! What `sacctmgr dump CLUSTER` writes of accounts and users, and `sacctmgr -P show qos` of qualities of service.

use std::collections::BTreeMap;

use super::conf::Row;

/// Most associations, *ours*.
const ROWS_MAX: usize = 100_000;

/// An account of a cluster, or a user in one, with the keys of its line in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The account above; of a user its account.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Whether it is a user.
    pub is_user: bool,
    /// `fairshare`, `grptres`, `maxjobs` and their like.
    pub values: Row,
}

/// The associations in the text of a dump; lines of another form are left out. None where there are more than 100,000.
#[must_use]
pub fn associations(text: &str) -> Option<Vec<Association>> {
    let (mut found, mut parent) = (Vec::new(), "root".to_owned());
    for line in text.lines().map(str::trim) {
        let Some((kind, rest)) = line.split_once(" - ") else {
            continue;
        };
        let mut parts = parts(rest);
        let name = parts
            .next()
            .map(|name| name.trim_matches('\'').to_owned())
            .unwrap_or_default();
        let is_user = match kind {
            "Parent" => {
                parent = name;
                continue;
            }
            "Account" => false,
            "User" => true,
            _ => continue,
        };
        let values = parts.filter_map(|part| {
            let (key, value) = part.split_once('=')?;
            Some((key.to_ascii_lowercase(), value.trim_matches('\'').to_owned()))
        });
        if found.len() == ROWS_MAX {
            return None;
        }
        found.push(Association {
            parent: parent.clone(),
            name,
            is_user,
            values: values.collect(),
        });
    }
    Some(found)
}

/// What stands between colons; those in quotes belong to a value.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter| {
        is_quoted ^= letter == '\'';
        letter == ':' && !is_quoted
    })
}

/// Rows of what `sacctmgr -P show ...` prints, by the names of its header in small letters.
#[must_use]
pub fn printed(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let header: Vec<String> = lines
        .next()
        .unwrap_or_default()
        .split('|')
        .map(str::to_ascii_lowercase)
        .collect();
    let row = |line: &str| {
        header
            .iter()
            .cloned()
            .zip(line.split('|').map(str::to_owned))
            .collect()
    };
    lines
        .filter(|line| !line.trim().is_empty())
        .take(ROWS_MAX)
        .map(row)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_names_accounts_below_their_parents_and_users_in_their_accounts() {
        let text = "# A comment - 'x'\nCluster - 'site':Fairshare=1:QOS='normal'\nParent - 'root'\n\
            User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n\
            Account - 'a1':Description='a: b':Organization='a1':Fairshare=60:GrpTRES=gres/gpu=16,cpu=8\n\
            Parent - 'a1'\nUser - 'u1':MaxJobs=2\n";
        let found = associations(text).unwrap();
        let names: Vec<(&str, &str, bool)> = found
            .iter()
            .map(|one| (one.parent.as_str(), one.name.as_str(), one.is_user))
            .collect();
        assert_eq!(
            names,
            [("root", "root", true), ("root", "a1", false), ("a1", "u1", true)]
        );
        assert_eq!(found[1].values["fairshare"], "60");
        assert_eq!(found[1].values["grptres"], "gres/gpu=16,cpu=8");
        assert_eq!(found[1].values["description"], "a: b");
        assert_eq!(associations("nothing"), Some(Vec::new()));
    }

    #[test]
    fn printed_tables_are_read_by_their_header() {
        let rows = printed("Name|Priority|MaxTRESPU\nnormal|0|\nurgent|100|gres/gpu=4\n");
        assert_eq!((rows.len(), rows[1]["maxtrespu"].as_str()), (2, "gres/gpu=4"));
    }
}
