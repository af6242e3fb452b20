//! `features.md` of the site is made from the schema.

use pleach_dealing::deal_markdown;
use pleach_scheduler::features::FeatureSchema;

/// Where `tests/conventions/site.sh` takes generated pages from.
const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pages/docs");

#[test]
fn the_page_of_features_is_made_for_the_site_with_a_row_for_each_column() {
    let page = FeatureSchema::current().markdown() + &deal_markdown();
    let schema = FeatureSchema::current();
    let shown = schema
        .features
        .iter()
        .filter(|feature| !feature.name.starts_with("test"));
    for feature in shown {
        assert!(
            page.contains(&format!("| `{}` |", feature.name)),
            "{}",
            feature.name
        );
    }
    std::fs::create_dir_all(PAGES).unwrap();
    std::fs::write(format!("{PAGES}/features.md"), page).unwrap();
}
