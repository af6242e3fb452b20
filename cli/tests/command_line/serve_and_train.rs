//! docs/tutorials/serve-and-train.md in short: its commands on two hours of one day.

use super::experimenter::{blocks, run};

const PAGE: &str = include_str!("../../../docs/tutorials/serve-and-train.md");

#[cfg(unix)]
#[test]
fn serving_and_training_on_16_gpus_goes_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, shown) = (blocks(PAGE, "bash"), blocks(PAGE, "text"));
    assert_eq!((lines.len(), shown.len()), (3, 3));
    for (line, shown) in lines.iter().zip(shown) {
        let said = run(
            folder.path(),
            &format!("{} --set hours=2 --set lists=2", line.trim()),
        );
        // The table of the page has the columns and the autoscalers of the command's, whose figures are those of two hours.
        let names = |table: &str| -> Vec<String> {
            let first = |line: &str| line.split_whitespace().next().unwrap_or("").to_string();
            table.lines().map(first).take(5).collect()
        };
        assert_eq!(names(&said)[2..5], names(shown)[2..5], "{said}");
        for table in [said.as_str(), shown] {
            let header: Vec<&str> = table.lines().next().unwrap_or("").split_whitespace().collect();
            assert!(header.starts_with(&["policy", "%", "over"]), "{table}");
        }
        assert!(said.contains("mean over 2 runs"), "{said}");
    }
}
