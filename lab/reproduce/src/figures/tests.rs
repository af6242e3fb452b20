//! Every benchmark runs, is described, and shows what it found.

use pleach_experiments::Plugins;
use std::sync::OnceLock;

use pleach_experiments::progress::Watcher;

use super::*;
use pleach_tests::assert_well_formed;

#[test]
fn ids_are_unique_and_found_in_any_case() {
    let mut ids: Vec<&str> = benchmarks().map(|benchmark| benchmark.id).collect();
    let num = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), num);
    for id in ids {
        assert_eq!(find(&id.to_uppercase()).unwrap().id, id);
    }
    assert!(find("nothing").unwrap_err().to_string().contains("lists them"));
}

fn smoke() -> Effort {
    Effort {
        seed: 0,
        num_seeds: None,
        smoke: true,
        data: None,
        watcher: Watcher::silent(),
    }
}

/// All of them, run small once for all tests.
fn done() -> &'static [(&'static Benchmark, Reproduction)] {
    static DONE: OnceLock<Vec<(&'static Benchmark, Reproduction)>> = OnceLock::new();
    let run = |benchmark: &'static Benchmark| (benchmark, (benchmark.run)(&smoke()).unwrap());
    DONE.get_or_init(|| {
        let planners = pleach_baselines::entries().copied();
        let plugins = planners.fold(Plugins::new(), Plugins::planner);
        plugins.room(pleach_rooms::ROOM).register().unwrap();
        benchmarks().map(run).collect()
    })
}

#[test]
fn every_benchmark_runs_small_and_shows_its_figures() {
    for (benchmark, reproduction) in done() {
        assert!(!reproduction.figures.is_empty(), "{} shows nothing", benchmark.id);
        for figure in &reproduction.figures {
            assert!(figure.ours.is_finite(), "{}: {figure:?}", benchmark.id);
        }
        assert!(reproduction.text(benchmark).contains(benchmark.id));
    }
    assert_well_formed(&Reproduction::report(done(), "pleach reproduce all").html());
}

/// Files with bounds of one side, and the claims in whose words they stand.
const CLAIMED: [(&str, &str); 4] = [
    ("compass.rs", "views older than a second hurt"),
    ("gavel.rs", "worse near saturation"),
    ("miriam.rs", "streams have the most"),
    ("synergy.rs", "gains"),
];

#[test]
fn a_figure_that_is_far_off_on_the_better_side_is_missed_unless_a_bound_was_claimed() {
    for (benchmark, reproduction) in done() {
        for figure in &reproduction.figures {
            let at = |value: f64| figure.target.is_met_by(value);
            match figure.target {
                Target::Record | Target::MostSeeds | Target::ClaimedAtLeast { .. } => {}
                _ => assert_eq!(
                    [at(-1e9), at(1e9)],
                    [Some(false); 2],
                    "{}: {}",
                    benchmark.id,
                    figure.what
                ),
            }
        }
    }
    // A small run does not come to all of them; the sources have them all.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/figures");
    let mut claimed = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Parts of a line of work claim nothing themselves.
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let claims = text.split("Target::ClaimedAtLeast {").skip(1);
        let claims = claims.filter_map(|rest| rest.split("claim: \"").nth(1)?.split('"').next());
        if !["figure.rs", "tests.rs"].contains(&name.as_str()) {
            claimed.extend(claims.map(|claim| (name.clone(), claim.to_string())));
        }
    }
    claimed.sort_unstable();
    let listed = CLAIMED.map(|(file, claim)| (file.to_string(), claim.to_string()));
    assert_eq!(claimed, listed, "the bounds that were claimed");
}

#[test]
fn above_capacity_no_figure_of_esg_is_held_to_a_published_one() {
    let (_, hits) = done()
        .iter()
        .find(|(benchmark, _)| benchmark.id == "esg-hits")
        .unwrap();
    let hits = &hits.figures;
    let above = hits
        .iter()
        .filter(|figure| figure.what.contains(" x1."))
        .collect::<Vec<_>>();
    assert!(above.len() >= 8 && above.iter().all(|figure| figure.holds.is_none()));
    let published = hits
        .iter()
        .filter(|figure| figure.target == Target::Between { low: 1.61, high: 1.8 });
    assert_eq!(published.count(), 12, "four rivals in three settings");
}

/// The verdicts of the table of figures, of those lines of work whose page is of training: one for each part of the last column.
fn verdicts(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut is_training = false;
    let mut verdicts = Vec::new();
    for row in rows.skip_while(|row| !row.starts_with("| id | what |")).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0] == "id" {
            break;
        }
        if !cells[0].is_empty() {
            is_training = cells[0].contains("](reproductions/");
        }
        if is_training {
            let last = cells[cells.len() - 1].split(';');
            verdicts.extend(last.map(|verdict| verdict.trim().to_string()));
        }
    }
    verdicts
}

#[test]
fn the_page_counts_the_figures_of_training_as_its_table_has_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../notes/reproductions.md");
    let page = std::fs::read_to_string(path).unwrap();
    let verdicts = verdicts(&page);
    let count = |word: &str| verdicts.iter().filter(|verdict| verdict.contains(word)).count();
    let [hold, missed, record] = ["hold", "missed", "for the record"].map(count);
    assert_eq!(hold + missed + record, verdicts.len(), "{verdicts:?}");
    let said = format!(
        "**{hold} of {} figures of training hold**, {missed} are missed, {record} more are for the record",
        hold + missed
    );
    assert!(page.contains(&said), "the page does not say: {said}");
}
