use super::*;
use crate::evaluate::results::tests::run;
use crate::evaluate::results::{PolicyRun, Results};
use crate::plot::{Axis, Mark};
use pleach_tests::{assert_well_formed, browser_faults};

const HOSTILE: &str = "</pre></title><script>alert(1)</script>\"&'\u{1b}";

fn results(num_policies: usize) -> Results {
    let mut runs: Vec<PolicyRun> = Vec::new();
    for policy in 0..num_policies {
        for seed in 0..3 {
            let jct_s = 1000.0 * (policy + 1) as f64 + seed as f64;
            runs.push(run(&format!("policy-{policy}<&>"), "w\"1\"", seed, jct_s));
        }
    }
    Results::new("evaluate", runs, Some("policy-0<&>")).unwrap()
}

fn tree() -> Tree {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/trees/PhillyGang-v1-tree.json"
    );
    Tree::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Every kind of block, hostile wherever text comes from outside.
fn report(results: &Results) -> Report {
    let table = Table {
        header: vec![HOSTILE.into(), "best".into()],
        rows: vec![vec![HOSTILE.into(), "1.5*".into()]],
        notes: vec![HOSTILE.into()],
    };
    let text = || HOSTILE.to_string();
    let blocks = [
        Block::Text(text()),
        Block::Verdict(text()),
        Block::Note(text()),
        Block::Heading(text()),
        Block::Code(text()),
        table.into(),
        Plot::new(HOSTILE, Axis::of(HOSTILE), Axis::of(HOSTILE))
            .with([Mark::line(HOSTILE, [(0.0, 3.0)])])
            .into(),
        (&tree()).into(),
    ];
    compared(HOSTILE, results)
        .section(HOSTILE, blocks)
        .section("empty", None)
        .made_by(HOSTILE, HOSTILE)
}

#[test]
fn the_page_is_well_formed_and_escapes_everything_from_outside() {
    let html = report(&results(3)).html();
    assert_well_formed(&html);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;") && !html.contains('\u{1b}'));
    for heading in [
        "Summary",
        "Against the reference",
        "Job completion times",
        "Utilisation",
        "How this was made",
    ] {
        assert!(html.contains(&format!("<h2>{heading}")), "{heading}");
    }
    assert!(!html.contains("<h2>empty") && html.contains("<td class=\"best\">1.5</td>"));
}

#[test]
fn every_figure_has_a_caption_and_is_read_out_by_it() {
    let html = report(&results(3)).html();
    let figures: Vec<&str> = html.split("<figure>").skip(1).collect();
    assert_eq!(figures.len(), 4);
    for figure in figures {
        let caption = figure
            .strip_prefix("<figcaption>")
            .and_then(|rest| rest.split("</figcaption>").next());
        let caption = caption.filter(|caption| !caption.is_empty()).unwrap();
        assert!(
            figure.contains(&format!("role=\"img\" aria-label=\"{caption}\"")),
            "{figure}"
        );
    }
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let html = report(&results(2)).html();
    for outside in [
        "http:", "https:", "src=\"", "href=", "url(", "@import", "<link", "<iframe", "<script", "<img",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn the_tree_is_whole_with_every_word_of_every_leaf_and_answer() {
    let tree = tree();
    let html = Report::new("t").section("The tree", [(&tree).into()]).html();
    let outline = tree.outline();
    assert_eq!(html.matches("class=\"leaf\"").count(), tree.num_leaves());
    for node in &outline.nodes {
        for words in node.sides.iter().flatten() {
            assert!(
                html.contains(&words.replace('>', "&gt;").replace('<', "&lt;")),
                "{words}"
            );
        }
    }
}

#[test]
fn text_and_json_hold_the_same_words_and_tables_as_the_page() {
    let report = Report::new("Title")
        .section("One", [Block::Text("words".into()), Block::Code("as is".into())])
        .section("Two", [Plot::default().into(), (&tree()).into()]);
    let text = report.text();
    assert!(text.starts_with("One\nwords\n\nas is\n\nTwo\n"), "{text}");
    let json = report.json();
    assert_eq!(json["sections"][0]["blocks"][1]["code"], "as is");
    assert_eq!(json["sections"][1]["blocks"][1]["tree"], tree().to_text());
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str| {
        report.write(&folder.path().join(name)).unwrap();
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    };
    assert_eq!(written("r.txt"), text);
    assert_eq!(serde_json::from_str::<Value>(&written("r.json")).unwrap(), json);
    assert!(written("r.html").starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_wide_table_of_few_rows_is_turned_so_that_it_fits() {
    let header: Vec<String> = (0..12).map(|column| format!("c{column}")).collect();
    let row = |name: &str| (0..12).map(|column| format!("{name}{column}")).collect();
    let table = Table {
        header,
        rows: vec![row("a"), row("b")],
        notes: Vec::new(),
    };
    let html = html::table(&table).into_string();
    assert!(
        html.contains("<th scope=\"col\">c0</th><th scope=\"col\">a0</th><th scope=\"col\">b0</th>"),
        "{html}"
    );
    assert!(
        html.contains("<tr><td>c1</td><td>a1</td><td>b1</td></tr>"),
        "{html}"
    );
}

#[test]
fn the_page_stays_small_however_long_the_runs_are() {
    let mut runs = Vec::new();
    for policy in 0..20 {
        let mut long = run(&format!("p{policy}"), "w", 0, 100.0 + f64::from(policy));
        long.jct_s = (1..20_000).map(f64::from).collect();
        long.utilisation = (0..20_000)
            .map(|at| (f64::from(at), f64::from(at % 7) / 7.0))
            .collect();
        runs.push(long);
    }
    let html = report(&Results::new("evaluate", runs, None).unwrap()).html();
    assert_well_formed(&html);
    assert!(html.len() < 500_000, "{}", html.len());
}

#[test]
fn runs_without_jcts_or_a_reference_have_no_such_plot() {
    let mut none = run("fifo", "w", 0, 100.0);
    none.jct_s.clear();
    none.utilisation.clear();
    let report = compared("t", &Results::new("evaluate", vec![none], None).unwrap());
    let headings: Vec<&str> = report
        .sections
        .iter()
        .map(|section| section.heading.as_str())
        .collect();
    assert_eq!(headings, ["Summary"]);
}

/// Names as long as they come, curves that meet, and several tables, on a phone and on a screen.
#[test]
fn in_a_browser_nothing_is_cut_or_covered_on_a_phone_or_a_screen() {
    let mut runs: Vec<PolicyRun> = Vec::new();
    let names = [
        "best-type-delay",
        "network",
        "tree",
        "srtf",
        "gpu-time-reserve",
        "mine-and-yours-and-everybodys",
    ];
    for (place, name) in names.iter().enumerate() {
        for seed in 0..3 {
            let jct_s = 9e4 + 1e4 * place as f64 + 1e3 * seed as f64;
            let mut one = run(name, "philly-like", seed, jct_s);
            one.jct_s = (1..200).map(|job| 60.0 * f64::from(job * job)).collect();
            one.utilisation = (0..100)
                .map(|hour| (3600.0 * f64::from(hour), f64::from(hour % 7) / 7.0))
                .collect();
            runs.push(one);
        }
    }
    let other = [("srtf".to_string(), "as sjf: no preemption".to_string())].into();
    let results = Results::new("evaluate", runs, Some("best-type-delay"))
        .unwrap()
        .with_stand_ins(other);
    let metric = "average JCT over that of best-type-delay, validation workloads, learned network alone";
    let baselines = [("best-type-delay", 1.0), ("sjf-best-type", 1.01), ("sjf", 1.02)];
    let learning = Plot::new("Learning", Axis::of("environment steps"), Axis::of(metric))
        .of_policies()
        .with(baselines.map(|(name, value)| Mark::level(name, value)))
        .with([Mark::line("network", [(0.0, 1.3), (2.5e6, 0.95)])]);
    let html = compared("Policies compared", &results)
        .section(
            "The same again",
            [Table::compare(&results, &["avg_jct_s"]).into()],
        )
        .section("Learning", [learning.into()])
        .section("The tree", [(&tree()).into()])
        .made_by(
            &format!("pleach evaluate --policy {}", names.join(",")),
            "load = 0.8\n",
        )
        .html();
    assert_well_formed(&html);
    assert!(html.contains("srtf (as sjf: no preemption)"));
    let folder = tempfile::tempdir().unwrap();
    if let Some(faults) = browser_faults(folder.path(), &[("report", &html)]) {
        assert_eq!(faults, [] as [String; 0]);
    }
}
