use crate::cluster::tests::submit;
use crate::cluster::{Capabilities, Cluster, Placement, Slice};
use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::ids::{ClassId, JobId, NodeId, Time};
use crate::physics::overheads::Overheads;
use crate::physics::storage::{Saver, Storage};

/// 140 GB (10,000 million parameters), a checkpoint every 1,000 s, 100 s of warm-up.
fn large() -> ModelClass {
    ModelClass {
        state_gib: 140e9 / 1_073_741_824.0,
        checkpoint_interval_s: Some(1000.0),
        warm_up_s: 100.0,
        ..ModelClass::default()
    }
}

fn cluster(capabilities: Capabilities, saver: Saver) -> Cluster {
    let mut spec = ClusterSpec::uniform(8, 8, 8);
    spec.storage = Some(Storage {
        read_gb_s: 10.0,
        write_gb_s: 10.0,
        saver,
    });
    Cluster::new(&spec, &[large()], capabilities).unwrap()
}

fn by_class() -> Capabilities {
    Capabilities {
        overheads: Some(Overheads::ByClass),
        class_checkpoints: true,
        ..Capabilities::DEFAULT
    }
}

fn start(cluster: &mut Cluster, id: JobId, num_nodes: u32) {
    let slice = |node| Slice {
        node: NodeId(node),
        gpus: 0xff,
    };
    let placement: Placement = (0..num_nodes).map(slice).collect();
    cluster.start(id, placement);
    cluster.check();
}

#[test]
fn a_start_costs_by_the_size_of_the_gang_and_the_least_is_below_all() {
    let mut cluster = cluster(by_class(), Saver::Tuned);
    for (num_gpus, load_s, save_s) in [
        // Read at 0.5 GB/s a GPU up to the store's 10, written at 0.25.
        (8, 3.0 + 140.0 / 4.0, 2.0 + 140.0 / 2.0),
        (64, 3.0 + 14.0, 2.0 + 14.0),
    ] {
        let id = submit(&mut cluster, num_gpus, 1e5);
        let first_s = 32.0 + 2.0 + 0.0027 * f64::from(num_gpus) + 100.0;
        let again_s = first_s + load_s + save_s;
        assert!((cluster.resume_cost_s(id) - first_s).abs() < 1e-9);
        assert!((cluster.restart_cost_s(id) - again_s).abs() < 1e-9, "{num_gpus}");
        assert!(cluster.restart_cost_s_min() <= again_s && again_s <= cluster.restart_cost_s_max());
    }
    assert!(!cluster.restarts_cost_the_same());
}

#[test]
fn a_checkpoint_takes_its_stall_out_of_every_interval() {
    // On 8 GPUs: 0.3 + 140 / 8 / 20 = 1.175 s behind the training's back, 2 + 140 / 2 = 72 s in front of it.
    for (saver, stall_s) in [(Saver::Tuned, 1.175), (Saver::Naive, 72.0)] {
        let mut cluster = cluster(by_class(), saver);
        let id = submit(&mut cluster, 8, 1e5);
        start(&mut cluster, id, 1);
        let rate = cluster.job(id).rate;
        assert!((1000.0 / rate - (1000.0 + stall_s)).abs() < 1e-6, "{rate}");
    }
}

#[test]
fn a_stop_loses_the_work_since_the_last_checkpoint_unless_there_is_time_to_save() {
    // Saving takes 72 s on 8 GPUs.
    for (stop_grace_s, kept_s) in [
        (None, 2500.0),
        (Some(72.0), 2500.0),
        (Some(71.0), 2000.0),
        (Some(0.0), 2000.0),
    ] {
        let capabilities = Capabilities {
            stop_grace_s,
            ..by_class()
        };
        let mut cluster = cluster(capabilities, Saver::Tuned);
        let id = submit(&mut cluster, 8, 1e5);
        start(&mut cluster, id, 1);
        let (rate, cost_s) = (cluster.job(id).rate, cluster.job(id).cost_left_s);
        cluster.advance(Time::from_secs_f64(cost_s + 2500.0 / rate));
        cluster.preempt(id);
        cluster.check();
        let (executed_s, saved_s) = (cluster.job(id).executed_s, cluster.job(id).saved_s);
        assert!(
            (executed_s - kept_s).abs() < 1e-3,
            "{stop_grace_s:?}: {executed_s}"
        );
        assert_eq!(executed_s, saved_s);
        // A job that cannot save does not pay for it either.
        let save_s = if kept_s > 2000.0 { 72.0 } else { 0.0 };
        let again_s = 32.0 + 2.0216 + 100.0 + 38.0 + save_s;
        assert!(
            (cluster.resume_cost_s(id) - again_s).abs() < 1e-9,
            "{stop_grace_s:?}"
        );
    }
}

#[test]
fn without_its_settings_a_class_with_facts_is_as_one_without() {
    let mut plain = Cluster::new(
        &ClusterSpec::uniform(8, 8, 8),
        &[ModelClass::default()],
        Capabilities::DEFAULT,
    )
    .unwrap();
    let mut with_facts = cluster(Capabilities::DEFAULT, Saver::Naive);
    for cluster in [&mut plain, &mut with_facts] {
        let id = submit(cluster, 8, 1e5);
        start(cluster, id, 1);
        cluster.advance(Time::from_secs_f64(1500.0));
        cluster.preempt(id);
        assert_eq!(cluster.job(id).executed_s, 1500.0);
        assert_eq!(cluster.resume_cost_s(id), 30.0);
        assert_eq!(cluster.checkpoint_interval_s(ClassId(0)), None);
    }
}

#[test]
fn a_first_start_costs_no_more_than_a_restart_that_was_measured() {
    // By the law a first start on 4 GPUs takes 32 + 2.0108 + 10 = 44.0108 s. Sia measured 25 s for the whole restart of deepspeech2, and
    // 120 s for bert's.
    for (name, measured_s, first_s) in [("deepspeech2", 25.0, 25.0), ("bert", 120.0, 44.0108)] {
        let class = ModelClass {
            name: name.into(),
            warm_up_s: 10.0,
            restart_cost_s: Some(measured_s),
            ..large()
        };
        let spec = ClusterSpec::uniform(8, 8, 8);
        let mut cluster = Cluster::new(&spec, &[class], by_class()).unwrap();
        let id = submit(&mut cluster, 4, 1e5);
        assert!((cluster.resume_cost_s(id) - first_s).abs() < 1e-9, "{name}");
        assert_eq!(cluster.restart_cost_s(id), measured_s);
    }
}
