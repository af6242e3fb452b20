//! Priorities and their factors beside those that `sprio` printed every 15 s.

use std::collections::BTreeMap;
use std::io::Read as _;

use pleach_dealing::slurm::Priority;

use super::cases;
use super::given::Given;

/// What `sprio` printed of a list: when, s, and the rows of the waiting jobs, see [`COLUMNS`].
pub(super) fn samples(name: &str) -> Vec<(f64, Vec<Vec<u32>>)> {
    let path = pleach_tests::data(&format!("slurm-schedules/{name}/sprio.txt.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    // `gres/gpu=12` is 12.
    let cell = |cell: &str| cell.rsplit('=').next().unwrap().parse().unwrap_or(0);
    let sample = |text: &str| {
        let (at, rows) = text.split_once('\n').unwrap();
        let rows = rows.lines().map(|line| line.split('|').map(cell).collect());
        (at.parse().unwrap(), rows.collect())
    };
    text.split("# ").skip(1).map(sample).collect()
}

/// The columns of [`samples`] behind the job and its user.
const COLUMNS: [&str; 7] = [
    "priority",
    "age",
    "fair share",
    "size",
    "partition",
    "qos",
    "tres",
];

#[test]
fn given_the_real_state_priorities_and_each_of_their_factors_are_those_that_sprio_printed() {
    for (name, case) in cases() {
        let Some(priority) = &case.config.priority else {
            continue;
        };
        let given = Given::of(&case, BTreeMap::new());
        let none = Priority {
            age: 0,
            fair_share: 0,
            size: 0,
            partition: 0,
            qos: 0,
            gpu: 0,
            cpu: 0,
            ..priority.clone()
        };
        let alone = [
            priority.clone(),
            Priority {
                age: priority.age,
                ..none.clone()
            },
            Priority {
                fair_share: priority.fair_share,
                ..none.clone()
            },
            Priority {
                size: priority.size,
                ..none.clone()
            },
            Priority {
                partition: priority.partition,
                ..none.clone()
            },
            Priority {
                qos: priority.qos,
                ..none.clone()
            },
            Priority {
                gpu: priority.gpu,
                cpu: priority.cpu,
                ..none
            },
        ];
        let mut found = [(0, 0); COLUMNS.len()];
        for (at_s, rows) in samples(&name) {
            for row in rows {
                let Some(number) = case.jobs.iter().position(|job| job.num.0 == row[0]) else {
                    continue;
                };
                let facts = given.facts_at(number, at_s);
                for ((found, of), printed) in found.iter_mut().zip(&alone).zip(&row[2..]) {
                    let is_same = of.of(&facts).abs_diff((*printed).max(1)) <= 1;
                    *found = (found.0 + usize::from(is_same), found.1 + 1);
                    if !is_same && std::env::var("SHOW").is_ok() {
                        println!("{name} {at_s} {row:?} ours {}", of.of(&facts));
                    }
                }
            }
        }
        println!("{name}: {:?}", COLUMNS.iter().zip(found).collect::<Vec<_>>());
        // The classic fair share lags, and of a job that came in the second of a recomputation it is not known which was first.
        let is_known =
            |column: &&str| name != "d2_fair_classic" || !["priority", "fair share"].contains(column);
        let columns = COLUMNS.iter().zip(found).filter(|(column, _)| is_known(column));
        let least = columns.map(|(_, (same, all))| same * 1000 / all).min();
        assert!(least >= Some(996) && found[0].1 >= 200, "{name}: {found:?}");
    }
}
