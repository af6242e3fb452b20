//! Texts as Slurm 22.05 prints them where GPUs are given in shares.

use super::*;
use crate::slurm::observe::{Texts, read};
use crate::snapshot::Snapshot;

/// Two nodes set apart, of which `sinfo` has forgotten that a share of GPU 1 of s1 is in use, and one with whole GPUs.
const NODES: &str = "64000|0|1|(null)|s1|mixed|gpu:a100:4,shard:a100:16|gpu:a100:0(IDX:N/A),shard:a100:1(IDX:0)|3/13/0/16|main*|
64000|0|1|(null)|s2|idle|gpu:a100:2,shard:a100:8|gpu:a100:0(IDX:N/A),shard:a100:0(IDX:N/A)|0/16/0/16|main*|
64000|0|1|(null)|g1|idle|gpu:a100:4|gpu:a100:0(IDX:N/A)|0/16/0/16|main*|
";

/// Lines of `scontrol -o -d show job`, without the parts that are not read.
const DETAILS: &str = "\
JobId=21 JobName=wrap UserId=root(0) JobState=RUNNING NodeList=s1 JOB_GRES=shard:2   Nodes=s1 CPU_IDs=2 Mem=0 GRES=shard:2(IDX:1) \
MinCPUsNode=1 TresPerNode=gres:shard:2 
JobId=25 ArrayJobId=22 ArrayTaskId=3 JobName=wrap JobState=RUNNING NodeList=s1   Nodes=s1 CPU_IDs=0 Mem=0 GRES=shard:3(IDX:0) \
MinCPUsNode=1
JobId=23 JobName=wrap JobState=RUNNING NodeList=s[1-2]   Nodes=s1 CPU_IDs=1 Mem=0 GRES=gpu:a100:1(IDX:3) Nodes=s2 CPU_IDs=0 Mem=0 \
GRES=gpu:a100:1(IDX:0) MinCPUsNode=1
JobId=24 JobName=wrap JobState=PENDING NodeList=(null) ReqNodeList=s1 TresPerNode=gres:shard:1 
";

fn line(id: &str, state: &str, asked: &str, num_nodes: &str, nodes: &str) -> String {
    let start = match state {
        "PENDING" => "N/A",
        _ => "1795384550",
    };
    format!(
        "cpu=1,node=1|normal|N/A|N/A|{id}|{state}|9|gres:{asked}|N/A|N/A|N/A|{num_nodes}|1|{nodes}||(null)|None|10:00|1795384544|{start}|0|OK|0|\
         (null)|(null)|(null)|(null)|main|ann|(null)|\n"
    )
}

fn seen(jobs: &[String], names: &[&str], details: &str) -> Result<Snapshot, Error> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let jobs = jobs.concat();
    let texts = Texts {
        jobs: &jobs,
        nodes: NODES,
        share_nodes: &names,
        details,
        ..Texts::default()
    };
    read(&texts, "main", 1_795_384_600)
}

fn running() -> Vec<String> {
    vec![
        line("21", "RUNNING", "shard:2", "1", "s1"),
        line("22_3", "RUNNING", "shard:3", "1", "s1"),
        line("23", "RUNNING", "gpu:1", "2", "s[1-2]"),
        line("24", "PENDING", "shard:1", "1", ""),
    ]
}

#[test]
fn shares_are_read_with_their_gpus_and_those_that_others_hold_are_none_of_ours() {
    let snapshot = seen(&running(), &["s1", "s2"], DETAILS).unwrap();
    let shares: Vec<_> = snapshot
        .jobs
        .iter()
        .map(|job| job.share.map(|share| (share.shards, share.gpu_milli, share.gpu)))
        .collect();
    assert_eq!(
        shares,
        [
            Some((2, 500, Some(1))),
            Some((3, 750, Some(0))),
            None,
            Some((1, 250, None))
        ]
    );
    assert_eq!(snapshot.jobs[0].phase, Phase::Running);
    assert_eq!(snapshot.jobs[3].phase, Phase::Loose);
    assert!(
        matches!(&snapshot.jobs[2].phase, Phase::Foreign { reason } if reason.contains("given in shares (s1)"))
    );
    // Job 23 is left alone: its GPUs 3 of s1 and 0 of s2 are not given.
    let taken: Vec<_> = snapshot.nodes.iter().map(|node| node.shared).collect();
    let with = |gpus_taken| Some(SharedNode { gpus_taken });
    assert_eq!(taken, [with(0b1000), with(0b1), None]);
}

#[test]
fn a_share_elsewhere_is_left_to_slurm_and_one_that_is_too_large_is_last() {
    let jobs = [
        line("21", "RUNNING", "shard:2", "1", "g1"),
        line("24", "PENDING", "shard:5", "1", ""),
        line("26", "PENDING", "shard:2", "2", ""),
        line("27", "PENDING", "gpu:4", "1", ""),
        line("28", "PENDING", "shard:a100:4", "1", ""),
        line("29", "PENDING", "shard:v100:1", "1", ""),
    ];
    let snapshot = seen(&jobs, &["s1", "s2"], "").unwrap();
    let phase = |at: usize| &snapshot.jobs[at].phase;
    let foreign = |at: usize| match phase(at) {
        Phase::Foreign { reason } => reason.as_str(),
        other => panic!("{other:?}"),
    };
    assert!(foreign(0).contains("not in share_nodes (g1)"));
    assert!(matches!(phase(1), Phase::Blocked { reason } if reason.contains("no GPU has more than 4")));
    for at in 2..6 {
        assert_eq!(phase(at), &Phase::Loose, "it is ranked, whatever it is: {at}");
    }
    assert_eq!(
        snapshot.jobs[4].gpu_milli(),
        1000,
        "all shards of a GPU are the GPU"
    );
    // A job with whole GPUs fits only where GPUs are whole.
    let snapshot = seen(&jobs[3..4], &["s1", "s2", "g1"], "");
    assert!(
        snapshot
            .unwrap_err()
            .to_string()
            .contains("g1 with 0 shards on 4 GPUs")
    );
}

#[test]
fn without_nodes_set_apart_shares_are_ranked_as_gpus() {
    let snapshot = seen(&running(), &[], DETAILS).unwrap();
    assert!(snapshot.jobs.iter().all(|job| job.share.is_none()));
    assert!(snapshot.nodes.iter().all(|node| node.shared.is_none()));
    assert_eq!(
        (&snapshot.jobs[3].phase, snapshot.jobs[3].num_gpus()),
        (&Phase::Loose, 1)
    );
    for names in [&["s1", "nowhere"][..], &["g1"]] {
        assert!(seen(&[], names, "").is_err(), "{names:?}");
    }
}

#[test]
fn a_node_on_which_somebody_holds_nobody_knows_what_takes_nobody_for_a_round() {
    let snapshot = seen(&running(), &["s1", "s2"], "").unwrap();
    assert_eq!(snapshot.nodes[0].state, NodeState::Draining);
    let snapshot = seen(&running(), &["s1", "s2"], DETAILS).unwrap();
    assert_eq!(snapshot.nodes[0].state, NodeState::Up);
}

#[test]
fn as_many_shares_fit_into_a_thousand_as_slurm_lets_on_a_gpu_and_never_more() {
    for per_gpu in 1..=200_u32 {
        for shards in 1..=per_gpu {
            let (milli, most) = (u32::from(gpu_milli(shards, per_gpu)), per_gpu / shards);
            assert!(milli * (most + 1) > 1000, "{shards} of {per_gpu}");
            assert!(per_gpu > 31 || milli * most <= 1000, "{shards} of {per_gpu}");
        }
    }
    assert_eq!(
        [gpu_milli(1, 3), gpu_milli(10, 80), gpu_milli(1, 80)],
        [333, 125, 13]
    );
}

#[test]
fn no_cut_and_no_changed_byte_of_the_details_makes_the_reader_panic() {
    for at in 0..DETAILS.len() {
        let _ = held_gpus(&DETAILS[..at]);
        for byte in [b'|', b'[', b',', b'=', b'9', b'-', b'\n', b'(', b' '] {
            let mut changed = DETAILS.as_bytes().to_vec();
            changed[at] = byte;
            let _ = held_gpus(&String::from_utf8(changed).unwrap());
        }
    }
    assert_eq!(indices("gpu:a100:3(IDX:0-1,3),shard:1(IDX:70)"), 0b1011);
}
