//! What rates, starts and losses are held to, worked by hand.

use super::*;
use crate::Starts;

const FABRIC: &str = "
[cluster.fabric.inside]
ring_gb_per_s = 100.0
nodes_per_domain = 1
latency_us = 0.0
root_us = 0.0
[cluster.fabric.between]
nics_per_node = 4
nic_gb_per_s = 10.0
latency_us = 0.0
latency_per_domain_us = 0.0
root_us = 0.0
rack_oversubscription = 4.0
racks_per_pod = 0
pod_oversubscription = 1.0
tuned = 1.0
hash_loss = 0.0
";

/// Two racks of four nodes of eight GPUs, and one class.
fn cluster(class: &str, links: &str) -> String {
    format!(
        "[[classes]]\nname = 'it'\nspeed = [2.0]\n{class}\n[cluster]\ngpu_types = [{{ name = 'A', memory_gib = 40.0 }}]\n\
         tenants = [{{ name = 't', quota_gpus = 64 }}]\n[[cluster.node_groups]]\ncount = 8\ngpus_per_node = 8\n\
         gpu_type = 'A'\nnodes_per_rack = 4\ncpu_cores = 32\nmemory_gib = 256\n{links}"
    )
}

/// The largest rate that a job of so many GPUs may have on these nodes without a fault, to a hundredth of a per cent.
fn rate_max(cluster: &str, num_gpus: u32, nodes: &str, cores: f64) -> f64 {
    let list = format!("job_id,submit_s,num_gpus,run_time_s\na,0,{num_gpus},1e9\n");
    rate_max_of(cluster, list, nodes, cores)
}

fn rate_max_of(cluster: &str, list: String, nodes: &str, cores: f64) -> f64 {
    let facts = Facts::of_text("jobs", list.into(), cluster).unwrap();
    let is_sound = |rate: f64| {
        let rows = format!(
            "job_id,nodes,from_s,to_s,rate,cpu_cores,memory_gib,ended\na,{nodes},0,1,{rate},{cores},0,killed\n"
        );
        let conditions = Conditions {
            failures: Failures {
                jobs: true,
                ..Failures::default()
            },
            ..Conditions::default()
        };
        let found = verify(&facts, &conditions, &run_of(&rows)).unwrap().faults;
        let strange = found.iter().find(|fault| fault.rule != Rule::Rate);
        assert!(strange.is_none(), "{strange:?}");
        found.is_empty()
    };
    let (mut low, mut high) = (0.0, 1000.0);
    while high - low > 1e-5 * high {
        let middle = f64::midpoint(low, high);
        *if is_sound(middle) { &mut low } else { &mut high } = middle;
    }
    low
}

fn is_near(value: f64, expected: f64, part: f64) {
    assert!((value / expected - 1.0).abs() < part, "{value} for {expected}");
}

#[test]
fn a_gang_is_as_fast_as_its_class_and_loses_what_its_class_says_on_a_loose_placement() {
    let text = cluster("locality = { more_nodes = 0.8, cross_rack = 0.5 }", "");
    is_near(rate_max(&text, 8, "0:0-7", 0.0), 2.0, 1e-3);
    is_near(rate_max(&text, 8, "0:0-3 1:0-3", 0.0), 1.6, 1e-3);
    is_near(rate_max(&text, 8, "3:0-3 4:0-3", 0.0), 1.0, 1e-3);
    // No rack holds 40 GPUs, so two cost nothing; six nodes where five would do are more than needed.
    is_near(rate_max(&text, 40, "0-4:0-7", 0.0), 2.0, 1e-3);
    is_near(rate_max(&text, 40, "0-3:0-7 4:0-3 5:0-3", 0.0), 1.6, 1e-3);
}

#[test]
fn links_price_a_loose_gang_and_a_wide_one_is_compared_with_full_racks() {
    let text = cluster(
        "step = { compute_s = 0.0001, gradient_bytes = 1e9, gamma = 1.0 }",
        FABRIC,
    );
    is_near(rate_max(&text, 8, "0:0-7", 0.0), 2.0, 3e-3);
    // Inside: 1.75 GB at 100 GB/s, 17.5 ms. Two nodes, 4 GPUs and 4 NICs each: a tree, the least of 93 and .92 x 1.75 x 40 = 64.4
    // GB/s, 27.174 ms.
    is_near(
        rate_max(&text, 8, "0:0-3 1:0-3", 0.0),
        2.0 * (0.1 + 17.5) / (0.1 + 27.174),
        3e-3,
    );
    // The same over two racks of four nodes at 4:1: an uplink has 4 NICs of 16, and each side wants 4 x 1/1.
    is_near(
        rate_max(&text, 8, "3:0-3 4:0-3", 0.0),
        2.0 * (0.1 + 17.5) / (0.1 + 27.174),
        3e-3,
    );
    // 40 GPUs: four nodes of a full rack want 16 NICs x 1/4 of its 4, and the fifth node 4 x 4/4 of 4: nothing is short. 3 + 2 nodes
    // want 12 x 2/4 = 6 of 4: share 2/3. Both at 0.97 of what they get: 38.8 and 25.87 GB/s for 1.95 GB.
    is_near(rate_max(&text, 40, "0-3:0-7 4:0-7", 0.0), 2.0, 3e-3);
    let (tight_ms, loose_ms) = (1950.0 / 38.8, 1950.0 / (38.8 * 2.0 / 3.0));
    is_near(
        rate_max(&text, 40, "0-2:0-7 4-5:0-7", 0.0),
        2.0 * (0.1 + tight_ms) / (0.1 + loose_ms),
        3e-3,
    );
}

#[test]
fn a_type_whose_nodes_lack_the_cores_of_a_gang_is_no_tight_place_for_it() {
    // Type B has nodes of 16 GPUs and 16 cores: a gang of 8 lies there on one node, unless each of its GPUs comes with 4 cores.
    let text = "[[classes]]\nname = 'it'\nspeed = [2.0, 2.0]\nlocality = { more_nodes = 0.8, cross_rack = 0.5 }\n[cluster]\n\
        gpu_types = [{ name = 'A', memory_gib = 40.0 }, { name = 'B', memory_gib = 40.0 }]\n\
        tenants = [{ name = 't', quota_gpus = 64 }]\n[[cluster.node_groups]]\ncount = 4\ngpus_per_node = 4\ngpu_type = 'A'\n\
        nodes_per_rack = 4\ncpu_cores = 32\nmemory_gib = 256\n[[cluster.node_groups]]\ncount = 1\ngpus_per_node = 16\n\
        gpu_type = 'B'\nnodes_per_rack = 4\ncpu_cores = 16\nmemory_gib = 256\n";
    let list = |cores: f64| format!("job_id,submit_s,num_gpus,run_time_s,cpu_cores\na,0,8,1e9,{cores}\n");
    is_near(rate_max_of(text, list(1.0), "0:0-3 1:0-3", 1.0), 1.6, 1e-3);
    is_near(rate_max_of(text, list(4.0), "0:0-3 1:0-3", 4.0), 2.0, 1e-3);
}

#[test]
fn an_elastic_job_is_as_fast_as_its_size_and_a_sensitive_one_as_its_cores() {
    let text = cluster("elastic = { gpus_max = 8, sizes = [[2, 1.0], [4, 1.9]] }", "");
    for (num_gpus, rate) in [(2, 2.0), (3, 2.0), (4, 3.8), (8, 3.8)] {
        is_near(
            rate_max(&text, 2, &format!("0:0-{}", num_gpus - 1), 0.0),
            rate,
            1e-3,
        );
    }
    // A step of 1 s whatever the batch, free synchronisation, no sample wasted: k GPUs are k times as fast, and a tenth is slack.
    let goodput = "elastic = { gpus_max = 8, profile = { initial_batch = 1, max_batch = 64, min_local_batch = 1, max_local_batch = 8, \
        noise_at_start = 1e12, noise_at_end = 1e12, time = { alpha_c = 1.0, beta_c = 1e-12, alpha_n = 0.0, beta_n = 0.0, \
        alpha_r = 0.0, beta_r = 0.0, gamma = 1.0 } } }";
    is_near(
        rate_max(&cluster(goodput, ""), 2, "0:0-3", 0.0),
        2.0 * 2.0 * 1.1,
        1e-2,
    );
    // 4 cores a GPU are the node's part; 6 lie in the middle between 4 and 8.
    let text = cluster(
        "sensitivity = { cores = [2, 4, 8], memory_gib = [16], speed = [0.5, 1.0, 1.5] }",
        "",
    );
    for (cores, factor) in [(0.0, 1.0), (6.0, 1.25), (1.0, 0.25), (12.0, 1.5)] {
        is_near(rate_max(&text, 1, "0:0", cores), 2.0 * factor, 1e-3);
    }
}

#[test]
fn starts_cost_what_their_model_says_at_least() {
    let class = "state_gib = 10.0\nwarm_up_s = 20.0";
    let list = "job_id,submit_s,num_gpus,run_time_s\na,0,4,100\n";
    let least_s = |class: &str, starts: Starts, deviation: f64| {
        let facts = Facts::of_text("jobs", list.into(), &cluster(class, "")).unwrap();
        starts.least_s(&facts, &facts.jobs["a"], deviation)
    };
    let (start_s, restart_s) = least_s(class, Starts::ByClass, 0.0);
    // 32 + 2 + 0.0108 + 20, and 3 + 10.737 GB at 2 GB/s.
    is_near(start_s, 54.0108, 1e-9);
    is_near(restart_s, 54.0108 + 3.0 + 10.737_418_24 / 2.0, 1e-9);
    let measured = least_s("warm_up_s = 20.0\nrestart_cost_s = 25.0", Starts::ByClass, 0.0);
    assert_eq!(
        measured,
        (25.0, 25.0),
        "no start is held to more than a measured restart"
    );
    let (start_s, _) = least_s(
        class,
        Starts::Each {
            start_s: 10.0,
            restart_s: 30.0,
        },
        0.3,
    );
    assert!(
        (1.0..1.3).contains(&start_s),
        "a draw may be cheap, not free: {start_s}"
    );
}

#[test]
fn a_failure_loses_what_was_done_at_most_and_only_where_the_settings_let_it() {
    let text = RECORD
        .replacen("5,45,1,10,attempt-failed", "5,45,1,41,attempt-failed", 1)
        .replacen(
            "gang,2,0:0-7 1:0-3,1000,0,2,16,0,60,130",
            "gang,2,0:0-7 1:0-3,1000,0,2,16,0,60,161",
            1,
        );
    let open = Conditions {
        closed: Vec::new(),
        ..conditions()
    };
    let found = faults(&open, &text);
    assert!(
        found.len() == 1 && found[0].what.contains("loses 41 s of work, and had done 40 s"),
        "{found:?}"
    );
    let kept = Conditions {
        failures: Failures {
            lose: false,
            ..conditions().failures
        },
        ..conditions()
    };
    let found = faults(&kept, RECORD);
    assert!(found.len() == 1 && found[0].rule == Rule::Loss, "{found:?}");
}
