//! `docs/features.md` is generated.

use pleach_baselines::dealing::deal_markdown;
use pleach_scheduler::features::FeatureSchema;

#[test]
fn the_feature_page_is_the_schema() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/features.md");
    assert_eq!(
        std::fs::read_to_string(page).unwrap(),
        FeatureSchema::current().markdown() + &deal_markdown(),
        "write it anew with: pleach policies --features > docs/features.md"
    );
}
