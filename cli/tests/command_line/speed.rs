//! `pleach bench`: what it measures on how many threads.

use super::{pleach, text};

#[test]
fn one_thread_has_no_row_of_two() {
    let folder = tempfile::tempdir().unwrap();
    for (threads, has_two) in [(1, false), (2, true)] {
        let line =
            format!("bench --only env --seconds 0.01 --num-envs 2 --threads {threads} --json bench.json");
        let output = pleach(folder.path(), &line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("2 environments, one thread"), "{said}");
        assert_eq!(said.contains("two threads"), has_two, "{said}");
        let written = std::fs::read_to_string(folder.path().join("bench.json")).unwrap();
        assert_eq!(written.contains("env_two_threads_ratio"), has_two, "{written}");
    }
}
