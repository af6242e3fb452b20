use crate::report::outline::LEVELS_UNFOLDED;
use std::collections::BTreeMap;

use pleach_scheduler::Provenance;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::key_weight::{KeyWeight, weighted_sum};
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::TreeMeta;
use pleach_tests::{assert_well_formed, browser_dom};

use super::*;

fn page(tree: &Tree) -> String {
    report(tree).html()
}

const HOSTILE: &str = "</script><script>alert('x')</script>\"&";

fn index(name: &str) -> u16 {
    FeatureSchema::current().joined_index(name).unwrap() as u16
}

fn split(name: &str, raw: f32, left: u32, right: u32) -> Node {
    let feature = index(name);
    let schema = FeatureSchema::current();
    let threshold = schema.joined(feature.into()).unwrap().encode(raw);
    Node::Split {
        feature,
        threshold,
        left,
        right,
    }
}

fn leaf(id: u32, score: f32, samples: u64) -> Node {
    Node::Leaf {
        id,
        score,
        samples,
        weight: samples as f64,
    }
}

/// A tree of five leaves with a key, whose name and provenance are hostile.
fn tree() -> Tree {
    let meta = TreeMeta {
        name: HOSTILE.into(),
        tie_key: TieKey::ShortestEstimate,
        key_weights: vec![
            KeyWeight {
                feature: index("num_gpus"),
                weight: 0.25,
            },
            KeyWeight {
                feature: index("remaining_s"),
                weight: 0.5,
            },
        ],
        needs: Needs::full(),
        estimates: vec![Provenance::UserLimit],
        trained_by: BTreeMap::from([(format!("{HOSTILE}key"), serde_json::json!({"a": HOSTILE}))]),
    };
    let nodes = [
        split("is_hold", 0.5, 1, 2),
        split("wait_s", 7200.0, 3, 4),
        leaf(0, -1.0, 50),
        split("gpu_time_gpu_s", 3600.0, 5, 6),
        split("free_fraction", 0.25, 7, 8),
        leaf(1, 2.0, 600),
        leaf(2, 0.5, 300),
        leaf(3, 1.0, 25),
        leaf(4, -2.0, 25),
    ];
    Tree::new(meta, &nodes).unwrap()
}

#[test]
fn the_page_holds_everything_that_is_known_of_the_tree() {
    let html = page(&tree());
    assert_well_formed(&html);
    for part in [
        // The tree: conditions in human units, coverage as width, what happens.
        "<li id=\"node-1\" style=\"--w:0.9500\"><details open><summary><span class=\"words\">is_hold = 0</span>",
        "<span class=\"words\">wait_s &lt;= 7,200 s (2.0 h)</span> <span class=\"share\">900 samples, 90 %</span>",
        "<div class=\"leaf\"><span class=\"tier\">tier 1</span>start, reserve, preempt</div>",
        "<span class=\"tier waits\">tier 5</span>start, reserve, preempt; below hold: waits",
        // The tiers, the key, the actions.
        "<tr><td class=\"text\">1</td><td class=\"text\">is_hold = 0 and wait_s &lt;= 7,200 s (2.0 h) and gpu_time_gpu_s &lt;= 3,600 GPU s</td>",
        "<p class=\"note\">Inside a tier first comes what has less num_gpus (0.125 for each tenfold) and less remaining_s",
        "<li>hold: in tier 4, the last of its tier.",
        // Certificates, as they are found now; the witness can be shown.
        "<span class=\"verdict refuted\">refuted</span></td><td class=\"text\">a job that waits longer, all else equal",
        "<span class=\"verdict proved\">proved</span></td><td class=\"text\">every score lies between -2 and 2",
        "data-witness=\"{&quot;",
        // Where it comes from.
        "<td class=\"text\">user-limit</td>",
        "<td class=\"text\">hash of the tree</td>",
        "<td class=\"text\">needs.lenses</td><td class=\"text\">arrival, shortest, ",
        "<td class=\"text\">gpu_time_gpu_s</td><td>GPU s</td><td class=\"text\">Believed rest times",
        "@media print",
        "@media (max-width: 60rem)",
        "name=\"viewport\"",
    ] {
        assert!(html.contains(part), "{part} in\n{html}");
    }
    for own in tree().certify() {
        assert!(
            html.contains(&own.property.to_string().replace('>', "&gt;").replace('<', "&lt;")),
            "{}",
            own.property
        );
    }
    assert_eq!(html, page(&tree()), "the same tree, the same page");
}

#[test]
fn hostile_words_stay_words_and_the_page_refers_to_nothing_outside() {
    let html = page(&tree());
    assert_eq!(html.matches("<script").count(), 2, "its data and its own");
    assert!(!html.contains("<script>alert('x')") && html.contains("&lt;script&gt;alert('x')"));
    for outside in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe", "<img", "import(",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_tree_of_one_leaf_and_a_large_one_have_a_page() {
    let mut meta = tree().meta().clone();
    meta.key_weights.clear();
    let one = page(&Tree::new(meta.clone(), &[leaf(0, 0.0, 0)]).unwrap());
    assert_well_formed(&one);
    assert!(one.contains("<span class=\"words\">always</span> <span class=\"share\">no samples</span>"));
    let mut nodes = Vec::new();
    for level in 0..60 {
        let raw = 1.0 + 100.0 * level as f32;
        nodes.push(split("num_gpus", raw, 2 * level + 1, 2 * level + 2));
        nodes.push(leaf(level, level as f32, 1));
    }
    nodes.push(leaf(60, 60.0, 1));
    let large = page(&Tree::new(meta, &nodes).unwrap());
    assert_well_formed(&large);
    assert_eq!(large.matches("<details open").count(), LEVELS_UNFOLDED);
    assert_eq!(large.matches("<details>").count(), 59 - LEVELS_UNFOLDED);
}

#[test]
fn in_a_browser_the_path_of_an_example_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let address = "kind=start&num_gpus=8&remaining_s=600&wait_s=3 h&gpu_time_gpu_s=4800&free_fraction=0.5";
    let Some(dom) = browser_dom(folder.path(), &page(&tree()), &address.replace(' ', "%20")) else {
        return;
    };
    // A wait of 3 h, half of the cluster free: nodes 1, 4 and 8 in the order of the page.
    let marked: Vec<&str> = dom
        .split("<li id=\"node-")
        .skip(1)
        .filter(|rest| rest[..rest.find('>').unwrap()].contains("class=\"on"))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let row = tree();
    let last = marked.last().unwrap().parse::<usize>().unwrap();
    assert!(
        matches!(row.nodes()[last], Node::Leaf { id: 4, .. }),
        "{marked:?}"
    );
    assert_eq!(marked.len(), 3, "{marked:?}");
    assert!(dom.contains("Tier 5 of 5: leaf 4, score -2."), "{dom}");
    assert!(
        dom.contains("<ol><li>is_hold = 0</li><li>wait_s &gt; 7,200 s (2.0 h)</li>"),
        "{dom}"
    );
    assert!(dom.contains("Its key is 0.350853: the least"), "{dom}");
    assert!(!dom.contains(" aria-invalid="));
    // What is no number of that unit is said, and no path is shown.
    let wrong = browser_dom(folder.path(), &page(&tree()), "kind=start&num_gpus=many").unwrap();
    assert!(wrong.contains(" aria-invalid=\"true\"") && !wrong.contains("class=\"on"));
}

#[test]
fn in_a_browser_values_and_leaves_are_those_of_the_scheduler_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree();
    let outline = tree.outline();
    let mut state = 7_u32;
    let mut draw = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    // Raw values over all magnitudes, beyond the ranges and none; then the walk of rows that meet thresholds exactly.
    let mut raws: Vec<f64> = (0..400).map(|_| 10_f64.powf(14.0 * draw() - 3.0)).collect();
    raws.extend([0.0, -1.0, 1.0, f64::from(f32::MAX)]);
    let rows = tree.golden_rows(200);
    let own: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            outline
                .features
                .iter()
                .map(|(index, _)| f64::from(row[usize::from(*index)]))
                .collect()
        })
        .collect();
    let harness = format!(
        "<pre id=\"found\"></pre><script>const raws = {}, rows = {}, out = [];\n\
         for (const feature of pleach.tree.features) for (const raw of raws) out.push(pleach.toBits(pleach.encode(feature, raw)));\n\
         for (const row of rows) {{ const path = pleach.walk(row);\n\
         out.push(pleach.tree.nodes[path[path.length - 1]].leaf, pleach.key(row)); }}\n\
         document.getElementById('found').textContent = out.join(' ');</script></body>",
        serde_json::json!(raws),
        serde_json::json!(own)
    );
    let page = page(&tree).replace("</body>", &harness);
    let Some(dom) = browser_dom(folder.path(), &page, "") else {
        return;
    };
    let found = dom.split("<pre id=\"found\">").nth(1).unwrap();
    let found: Vec<f64> = found[..found.find('<').unwrap()]
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let mut expected = Vec::new();
    for (_, feature) in &outline.features {
        expected.extend(
            raws.iter()
                .map(|raw| f64::from(feature.encode(*raw as f32).to_bits())),
        );
    }
    for row in &rows {
        let Node::Leaf { id, .. } = tree.nodes()[tree.walk(row)] else {
            panic!("a walk ended in a split");
        };
        expected.extend([f64::from(id), weighted_sum(&tree.meta().key_weights, row)]);
    }
    assert_eq!(found, expected);
}
