//! The number of threads changes no byte.

use super::tiny_run::{self, SETTINGS};

#[test]
fn a_training_run_makes_the_same_bytes_on_one_thread_and_on_several() {
    for settings in [SETTINGS, &tiny_run::evolution()] {
        let folder = tempfile::tempdir().unwrap();
        for threads in ["1", "2", "5"] {
            tiny_run::succeed(tiny_run::train(folder.path(), threads, settings).args(["--threads", threads]));
        }
        tiny_run::assert_same(&folder.path().join("1"), &folder.path().join("2"));
        tiny_run::assert_same(&folder.path().join("1"), &folder.path().join("5"));
    }
}
