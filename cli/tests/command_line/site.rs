//! An operator's first hour (docs/tutorials/operator.md) in short form: from a site's export to a decision and the configuration of a
//! shadow, by the commands of that page, and what a run that is killed or changed does.

use std::fs;
use std::path::Path;

use super::{files, pleach, succeed, text};

#[allow(dead_code)] // Its `main`.
#[path = "../../../env/examples/synthetic_site/main.rs"]
pub(crate) mod synthetic_site;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tutorials/operator.md");

/// Simulations of a search unless site.toml says otherwise.
const SIMULATIONS: u32 = 4000;

/// The commands of `pleach` on the page, in their order.
fn commands() -> Vec<String> {
    let page = fs::read_to_string(PAGE).unwrap();
    let blocks = page.split("```bash\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let lines = blocks.flat_map(|block| {
        block
            .replace("\\\n", " ")
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    lines
        .filter_map(|line| line.strip_prefix("pleach ").map(str::to_owned))
        .collect()
}

/// The count that stands before ` simulations` in the line of the fit.
fn num_fitted(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .find(|line| line.starts_with("fitted on the first"))?;
    line.split(" simulations").next()?.rsplit(' ').next()
}

/// Fewer simulations than a person would want, but of every kind.
pub(crate) fn shorten(folder: &Path) {
    let site = folder.join("site.toml");
    let text = fs::read_to_string(&site).unwrap();
    let text = text
        .replace(&format!("# simulations = {SIMULATIONS}"), "simulations = 60")
        .replace("# accept_lists = 16", "accept_lists = 2")
        .replace("[search]\n", "[search]\nnum_jobs = 40\n");
    assert!(
        text.contains("simulations = 60") && text.contains("accept_lists = 2"),
        "{text}"
    );
    fs::write(site, text).unwrap();
}

#[test]
fn an_operators_first_hour_goes_from_an_export_to_a_decision_without_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synthetic_site::write(folder, 34.0).unwrap();
    let commands = commands();
    assert!(commands.len() >= 4, "{commands:?}");
    let mut said = String::new();
    for line in &commands {
        let told = succeed(folder, line);
        if line.contains("--init") {
            shorten(folder);
        }
        said.push_str(&told);
    }
    for words in [
        "asks for no GPU",
        "never began",
        "cluster: the 12 nodes of the list of nodes",
        "fitted on the first",
        "rank correlation",
        "judged after it",
        "pleach distill --search",
        "site-run/report.html",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The simulations that the page counts: those of the fit, and those of the search, which are fewer here.
    let page = fs::read_to_string(PAGE).unwrap();
    assert_eq!(num_fitted(&page), num_fitted(&said), "{said}");
    assert!(page.contains(&format!("--simulations {SIMULATIONS} ")), "{page}");
    assert!(said.contains("--simulations 60 "), "{said}");
    let decided: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("site-run/decision.json")).unwrap()).unwrap();
    // The site is EASY backfill with time limits, and the twin finds that out.
    assert_eq!(decided["twin"]["policy"], "easy");
    assert_eq!(decided["twin"]["estimates"], "user");
    assert_eq!(decided["twin"]["trust"], "close");
    let page = fs::read_to_string(folder.join("site-run/report.html")).unwrap();
    let verdict = decided["verdict"]["decision"].as_str().unwrap();
    let words = match verdict {
        "deploy" => "deploy ",
        "do-not-deploy" => "do not deploy",
        _ => "nothing to win here, because",
    };
    let end = page.rsplit("What to do").next().unwrap();
    assert!(end.contains(words), "{verdict}: {end}");
    pleach_tests::assert_well_formed(&page);
    if let Some(faults) = super::pages::faults(folder, &["site-run/report.html"]) {
        assert_eq!(faults, [] as [String; 0]);
    }
    reported(folder);
    going_on(folder, &said);
}

/// What was promised is held against the days that judged, which the site drove itself: seen is what EASY did.
fn reported(folder: &Path) {
    let said = succeed(
        folder,
        "report sacct.txt --nodes nodes.txt --since-day 22.1 --margin 0 --json report.json --html kept.html",
    );
    let found: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    let all = &found["rows"][0];
    let value = |row: &str| all[row]["figures"]["wait_s"]["value"].as_f64().unwrap();
    assert!(all["seen"]["num_jobs"].as_u64().unwrap() > 100, "{found}");
    let (promised, seen) = (value("promised"), value("seen"));
    assert!(
        promised > 0.0 && promised < seen,
        "a policy that went on waits less: {promised} {seen}"
    );
    // Each job that is compared was promised: the days are those that judged.
    let num = |row: &str| all[row]["num_jobs"].as_u64().unwrap();
    assert!(
        num("seen") <= num("promised") && num("promised") < num("seen") + 40,
        "{found}"
    );
    let outcome = found["outcome"].as_str().unwrap();
    assert!(["kept", "broken"].contains(&outcome), "{outcome}");
    for words in [
        "promise",
        "Promised and seen",
        "fairness",
        "tenant vision",
        "seen / twin",
        "95 % intervals",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = fs::read_to_string(folder.join("kept.html")).unwrap();
    assert!(page.contains("A promise and what became of it"));
    pleach_tests::assert_well_formed(&page);
    let refused = pleach(folder, "report sacct.txt --promise site.toml");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// What was begun goes on, each step alone does the same, and another site is another run.
fn going_on(folder: &Path, said: &str) {
    let run = folder.join("site-run");
    let before = files(&run);
    // As if it had been killed behind the search.
    for file in [
        "artefacts.json",
        "choose.json",
        "judge.json",
        "decision.json",
        "report.html",
    ] {
        fs::remove_file(run.join(file)).unwrap();
    }
    let again = succeed(folder, "run site.toml");
    assert_eq!(files(&run), before);
    // A second run of a finished folder prints the decision again.
    let verdict = |said: &str| {
        let words = ["deploy ", "do not deploy: ", "nothing to win here, because "];
        let is_one = |line: &&str| words.iter().any(|word| line.starts_with(word));
        said.lines().rev().find(is_one).map(str::to_owned)
    };
    assert!(verdict(&again).is_some(), "{again}");
    assert_eq!(verdict(&succeed(folder, "run site.toml")), verdict(&again));
    let judge = said
        .lines()
        .skip_while(|line| !line.ends_with("the judge"))
        .nth(1)
        .unwrap();
    let alone = succeed(folder, judge.trim().strip_prefix("pleach ").unwrap());
    let table = alone.lines().rev().take(4).collect::<Vec<_>>();
    assert!(table.iter().all(|line| said.contains(line)), "{alone}\n{said}");
    fs::write(
        folder.join("nodes.txt"),
        fs::read_to_string(folder.join("nodes.txt")).unwrap() + "\n",
    )
    .unwrap();
    let refused = pleach(folder, "run site.toml");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("--force"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_list_without_starts_has_no_twin_and_nothing_is_learned_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (accounting, shown) = synthetic_site::exports(16.0);
    // Start, End and NodeList are gone.
    let rows = accounting.lines().map(|line| {
        let fields: Vec<&str> = line.split('|').collect();
        let kept = fields
            .iter()
            .enumerate()
            .filter(|(place, _)| ![7, 8, 14].contains(place));
        kept.map(|(_, field)| *field).collect::<Vec<_>>().join("|") + "\n"
    });
    fs::write(folder.join("sacct.txt"), rows.collect::<String>()).unwrap();
    fs::write(folder.join("nodes.txt"), shown).unwrap();
    succeed(folder, "run site.toml --init sacct.txt --nodes nodes.txt");
    let said = succeed(folder, "run site.toml");
    for words in [
        "no twin",
        "left out: nothing is learned",
        "do not deploy: it is not known when jobs began",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!folder.join("site-run/tree.json").exists());
}
