//! Lists of nodes in every form, and what is reported of those that are out of service or not understood.

use std::collections::BTreeSet;

use super::nodes::*;

const BLOCKS: &str = "NodeName=g1 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUTot=128 CPULoad=0.01\n   \
    Gres=gpu:a100:8(S:0-1)\n   RealMemory=1030000 AllocMem=0 State=IDLE\n   Partitions=gpu,debug\n\n\
    NodeName=g2 Arch=x86_64\n   CPUTot=128 Gres=gpu:a100:8(S:0-1) RealMemory=1030000 Partitions=gpu\n\n\
    NodeName=v1 CPUTot=64 Gres=gpu:v100:4 RealMemory=500000 Partitions=old\nNodeName=c1 CPUTot=64 Gres=(null)\n";
const TABLE: &str = "NODELIST|GRES|CPUS|MEMORY|PARTITION\ng1|gpu:a100:8(S:0-1)|128|1030000|gpu*\n\
    g1|gpu:a100:8(S:0-1)|128|1030000|debug\ng2|gpu:a100:8(S:0-1)|128|1030000|gpu*\nv1|gpu:v100:4|64|500000|old\n\
    c1|(null)|64|1000|gpu*\n";

#[test]
fn blocks_tables_and_json_tell_of_the_same_nodes() {
    let blocks = NodeTable::of_text(BLOCKS).unwrap();
    assert_eq!(NodeTable::of_text(TABLE).unwrap(), blocks);
    assert_eq!(NodeTable::of_text(&BLOCKS.replace("\n   ", " ")).unwrap(), blocks);
    let json = r#"{"nodes": [
        {"name": "g1", "gres": "gpu:a100:8(S:0-1)", "cpus": 128, "real_memory": 1030000, "partitions": ["gpu", "debug"]},
        {"name": "g2", "gres": "gpu:a100:8(S:0-1)", "cpus": 128, "real_memory": 1030000, "partitions": ["gpu"]},
        {"name": "v1", "gres": "gpu:v100:4", "cpus": 64, "real_memory": 500000, "partitions": ["old"]},
        {"name": "c1", "gres": ""}]}"#;
    assert_eq!(NodeTable::of_text(json).unwrap(), blocks);
    let (cluster, notes) = blocks.cluster().unwrap();
    let groups: Vec<_> = cluster
        .node_groups
        .iter()
        .map(|group| {
            (
                group.count,
                group.gpus_per_node,
                group.gpu_type.as_str(),
                group.cpu_cores,
                group.memory_gib,
            )
        })
        .collect();
    assert_eq!(
        groups,
        [(2, 8, "a100", 128.0, 1005.0), (1, 4, "v100", 64.0, 488.0)]
    );
    assert_eq!(
        notes[..2],
        ["4 nodes read, 3 kept, 1 left out", "left out: no GPUs: 1 nodes"]
    );
    assert_eq!(blocks.partitions()["debug"], BTreeSet::from(["a100"]));
}

#[test]
fn compressed_lists_are_expanded_and_other_texts_refused_with_a_command() {
    let table = NodeTable::of_text("NODELIST  GRES  CPUS\ng[01-12]  gpu:a100:8  128\n").unwrap();
    assert_eq!(table.num_nodes(), 12);
    for text in [
        "",
        "hello\n",
        "{}",
        "NODELIST|STATE\ng1|idle\n",
        "NODELIST|GRES\ng1|(null)\n",
    ] {
        assert!(
            NodeTable::of_text(text)
                .unwrap_err()
                .contains("scontrol show node"),
            "{text}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[Nodeame=grsgpu:|()\\[\\],0-9\n A-Z{}\"é]{0,200}") {
        if let Ok(table) = NodeTable::of_text(&text) {
            let _ = table.cluster();
        }
    }
}

#[test]
fn nodes_out_of_service_count_where_jobs_ran_on_them_and_are_told_either_way() {
    let text = "NodeName=a1 CPUTot=32 Gres=gpu:l40s:4 RealMemory=256000 State=IDLE Partitions=gpu\n\
        NodeName=a2 CPUTot=32 Gres=gpu:l40s:4 RealMemory=256000 State=DOWN*+NOT_RESPONDING Partitions=gpu\n\
        NodeName=a3 CPUTot=32 Gres=gpu:l40s:4 RealMemory=256000 State=MIXED+DRAIN Partitions=gpu\n\
        NodeName=a4 CPUTot=32 Gres=gpu:l40s:4 RealMemory=256000 State=FUTURE Partitions=gpu\n";
    let table = NodeTable::of_text(text).unwrap();
    assert_eq!(table.num_nodes(), 3);
    let ran_on = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    for (names, num, words) in [
        (
            &["a1"][..],
            1,
            "left out: down now, and no job of the list ran on it, such as `a2`: 1 nodes",
        ),
        (
            &["a1", "a3"],
            2,
            "mended: drained now: kept, for it may have run jobs of the list: 1 nodes",
        ),
        (&[], 3, "mended: down now: kept"),
        (&["elsewhere"], 1, "left out: drained now"),
    ] {
        let there = table.in_service(&ran_on(names));
        let (_, notes) = there.cluster().unwrap();
        assert_eq!(there.num_nodes(), num, "{names:?}: {notes:?}");
        assert!(
            notes.iter().any(|note| note.starts_with(words)),
            "{names:?}: {notes:?}"
        );
        assert!(
            notes
                .iter()
                .any(|note| note.contains("FUTURE") && note.contains("`a4`")),
            "{notes:?}"
        );
    }
    let table = "NODELIST|GRES|STATE\na1|gpu:2|idle\na2|gpu:2|drain*\na3|gpu:2|futr\n";
    assert_eq!(
        NodeTable::of_text(table)
            .unwrap()
            .in_service(&ran_on(&["a1"]))
            .num_nodes(),
        1
    );
    for state in [
        r#"["DOWN"]"#,
        r#""down""#,
        r#"["IDLE", "DRAIN"]"#,
        r#""idle", "state_flags": ["DRAIN"]"#,
    ] {
        let json = format!(
            r#"{{"nodes": [{{"name": "a1", "gres": "gpu:2"}}, {{"name": "a2", "gres": "gpu:2", "state": {state}}}]}}"#
        );
        let there = NodeTable::of_text(&json).unwrap().in_service(&ran_on(&["a1"]));
        assert_eq!(there.num_nodes(), 1, "{state}");
    }
}

#[test]
fn nodes_of_kubernetes_that_are_cordoned_or_not_ready_are_told() {
    let node = |name: &str, spec: &str, ready: &str| {
        format!(
            r#"{{"kind": "Node", "metadata": {{"name": "{name}"}}, "spec": {spec}, "status": {{"capacity": {{"nvidia.com/gpu": "8",
                "cpu": "64", "memory": "1056289712Ki"}}, "conditions": [{{"type": "MemoryPressure", "status": "False"}},
                {{"type": "Ready", "status": "{ready}"}}]}}}}"#
        )
    };
    let nodes = [
        node("k1", "{}", "True"),
        node("k2", r#"{"unschedulable": true}"#, "True"),
        node("k3", "{}", "Unknown"),
    ];
    let text = format!(r#"{{"apiVersion": "v1", "items": [{}]}}"#, nodes.join(","));
    let table = NodeTable::of_text(&text)
        .unwrap()
        .in_service(&BTreeSet::from(["k1".to_owned()]));
    let (_, notes) = table.cluster().unwrap();
    assert_eq!(notes[0], "3 nodes read, 1 kept, 2 left out");
    for words in [
        "cordoned now, and no job of the list ran on it, such as `k2`",
        "NotReady now",
    ] {
        assert!(notes.iter().any(|note| note.contains(words)), "{notes:?}");
    }
}

#[test]
fn cells_of_nodes_that_cannot_be_read_are_told_and_no_node_is_lost_without_a_word() {
    let text = "NODELIST|GRES|CPUS|MEMORY\nb1|gpu:2|64|x\nb2|gpu:2|many|1000\nb3|gpu:a100:x|8|1000\nb4[|gpu:2|8|1000\n\
        b5|gpu:96|8|1000\nb6|4|8|1000\nb7|0|8|1000\n";
    let table = NodeTable::of_text(text).unwrap();
    let (_, notes) = table.cluster().unwrap();
    assert_eq!(notes[0], "7 nodes read, 4 kept, 3 left out", "{notes:?}");
    for words in [
        "left out: its GPUs are not understood, such as `gpu:a100:x`: 1 nodes",
        "left out: its name is not understood, such as `b4[`: 1 nodes",
        "left out: no GPUs: 1 nodes",
        "mended: its cores are not understood: not modelled: 1 nodes",
        "mended: its memory is not understood: not modelled: 1 nodes",
        "mended: more GPUs than 64: 64 are taken: 1 nodes",
    ] {
        assert!(notes.iter().any(|note| note == words), "{words}: {notes:?}");
    }
}
