//! Graphs from files: our own form, event logs of Spark, and what neither is.

use std::path::Path;

use pleach_graphs::file::read;

const OWN: &str = r#"{"templates":[{"edges":[[0,1]],"stages":[
    {"tasks":3,"rough_ms":1000,"levels":[5],"fresh":[[]],"first":[[2000]],"rest":[[1000]]},
    {"tasks":1,"rough_ms":1000,"levels":[5],"fresh":[[]],"first":[[2000]],"rest":[[]]}]}]}"#;

/// A job of three stages, of which one was skipped: 0 and 1 before 2.
fn log() -> String {
    let task = |stage: u64, executor: u64, launch: u64, finish: u64, failed: bool| {
        format!(
            r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Task Info":{{"Task ID":1,"Launch Time":{launch},"Finish Time":{finish},"Executor ID":"{executor}","Failed":{failed},"Killed":false}}}}"#
        )
    };
    let job = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Stage Infos":[{"Stage ID":0,"Parent IDs":[]},{"Stage ID":1,"Parent IDs":[]},{"Stage ID":2,"Parent IDs":[0,1]}],"Stage IDs":[0,1,2]}"#;
    let lines = [
        r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.1"}"#.to_string(),
        job.to_string(),
        task(0, 1, 1_000, 4_000, false),
        task(0, 1, 4_000, 5_000, false),
        task(0, 2, 1_500, 4_500, false),
        task(0, 2, 4_500, 4_600, true),
        task(2, 1, 5_000, 5_700, false),
    ];
    lines.join("\n")
}

fn of(folder: &Path, text: &str) -> Result<Vec<pleach_graphs::graph::Graph>, String> {
    let path = folder.join("graphs");
    std::fs::write(&path, text).unwrap();
    read(&path).map_err(|error| error.to_string())
}

#[test]
fn both_forms_are_read_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let graphs = of(here, OWN).unwrap();
    assert_eq!(
        (graphs.len(), graphs[0].stages().len(), graphs[0].work_ms()),
        (1, 2, 4_000)
    );
    assert_eq!((graphs[0].path_ms(0), graphs[0].bound_ms()), (2_000, 3_000));
    let graphs = of(here, &log()).unwrap();
    let graph = &graphs[0];
    // Stage 1 was skipped, so 2 waits for 0 alone; the failed task is left out.
    assert_eq!((graphs.len(), graph.stages().len(), graph.num_edges()), (1, 2, 1));
    assert_eq!((graph.stages()[0].tasks, graph.stages()[0].mean_ms), (3, 2_333));
    assert_eq!((graph.stages()[1].tasks, graph.stages()[1].mean_ms), (1, 700));
    for (change, words) in [
        (("[[0,1]]", "[[0,1],[1,0]]"), "circle"),
        (("[[0,1]]", "[[0,7]]"), "edge 0 to 7"),
        (("\"tasks\":3", "\"tasks\":0"), "1 to 100000"),
        (("[[2000]]", "[[]]"), "without fresh and first"),
        (("\"levels\":[5]", "\"levels\":[6]"), "levels [6]"),
        (("rough_ms", "rough"), "unknown field"),
        (("{\"templates\"", "{\"graphs\""), "unknown field"),
    ] {
        let said = of(here, &OWN.replacen(change.0, change.1, 1)).unwrap_err();
        assert!(said.contains(words), "{said}");
    }
    let said = of(here, &log().replace("{\"Event\":\"SparkListenerTaskEnd\",", "{")).unwrap_err();
    assert!(said.contains("line 3"), "{said}");
    assert!(of(here, "{\"templates\":[]}").unwrap_err().contains("0 graphs"));
    assert!(of(here, "").is_err() && read(&here.join("none")).is_err());
}

/// Bytes that are changed, left out or doubled, and ends that are missing: read or refused in words, and never a panic.
#[test]
fn spoilt_files_are_read_or_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (mut read, mut refused) = (0, 0);
    for seed in [OWN.to_string(), log()] {
        let bytes = seed.as_bytes();
        for place in (0..bytes.len()).step_by(3) {
            let (before, after) = (&bytes[..place], &bytes[place + 1..]);
            let spoilt = [
                before.to_vec(),
                [before, after].concat(),
                [before, b"9".as_slice(), after].concat(),
                [before, b"-".as_slice(), after].concat(),
                [before, b"\xff".as_slice(), after].concat(),
                [before, b"99999999999999999999".as_slice(), after].concat(),
                [before, &bytes[place..], before].concat(),
            ];
            for bytes in spoilt {
                let path = folder.path().join("graphs");
                std::fs::write(&path, bytes).unwrap();
                match pleach_graphs::file::read(&path) {
                    Ok(graphs) => read += usize::from(!graphs.is_empty()),
                    Err(problem) => {
                        assert!(problem.to_string().contains("graph"), "{problem}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(read > 50 && refused > 500, "{read} {refused}");
}
