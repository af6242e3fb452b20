use std::io::Write as _;

use pleach_scheduler::cluster_spec::{ClusterSpec, Resources, TenantSpec};
use pleach_scheduler::{Tasks, Time};
use proptest::prelude::*;

use super::sidecar_path;
use crate::import::{ImportOptions, import};
use crate::tests::{job, workload};
use crate::{Outcome, Workload};

/// Half of the jobs ask for whole GPUs and nothing else, as in most lists.
fn any_resources() -> impl Strategy<Value = Resources> {
    let asked = (1_u16..=1000, 0.0_f64..32.0, 0.0_f64..64.0, 0.0_f64..1000.0).prop_map(
        |(gpu_milli, gpu_memory_gib, cpu_cores, memory_gib)| Resources {
            gpu_milli,
            gpu_memory_gib,
            cpu_cores,
            memory_gib,
            ..Resources::WHOLE_GPU
        },
    );
    prop_oneof![Just(Resources::WHOLE_GPU), asked]
}

/// Tasks into which a gang can be cut on nodes of four GPUs.
fn any_tasks(num_gpus: u32) -> impl Fn((usize, u8, u16)) -> Tasks {
    move |(each, tasks_per_node_max, nodes_max)| {
        let gpus_per_task = [1, 2, 4][each];
        match num_gpus % u32::from(gpus_per_task) {
            0 => Tasks {
                gpus_per_task,
                tasks_per_node_max,
                nodes_max,
            },
            _ => Tasks::ANY,
        }
    }
}

pub(super) fn any_job() -> impl Strategy<Value = crate::JobSpec> {
    let name = "[a-zA-Z0-9 ,\"'éß-]{0,12}";
    let numbers = (0_i64..2_000_000_000_000_000, 1_u32..=8, 1e-6_f64..1e9);
    let options = (
        proptest::option::of(1e-6_f64..1e9),
        name,
        0_u16..3,
        0_u16..2,
        0_usize..4,
        any_resources(),
        proptest::option::of((0_usize..3, 4_u8..7, 2_u16..9)),
    );
    (numbers, options).prop_map(
        |((submit, num_gpus, run_time_s), (estimate_s, user, tenant, class, outcome, resources, tasks))| {
            let user = user.trim().to_owned();
            crate::JobSpec {
                id: String::new(),
                submit: Time(submit),
                num_gpus,
                run_time_s,
                estimate_s,
                tenant,
                class,
                user: (!user.is_empty()).then_some(user),
                outcome: Outcome::ALL[outcome],
                resources: Resources {
                    tasks: tasks.map_or(Tasks::ANY, any_tasks(num_gpus)),
                    ..resources
                },
                observed: (submit % 3 == 0).then(|| {
                    Box::new(crate::Observed {
                        start: Time(submit + 5),
                        end: (submit % 2 == 0).then_some(Time(submit + 7_000_001)),
                        nodes: "g[1-3,7],h01".into(),
                        partition: "long, \"old\"".into(),
                        constraint: if submit % 5 == 0 {
                            "a&(b|c)".into()
                        } else {
                            String::new()
                        },
                        licences: if submit % 7 == 0 {
                            "x:1,y".into()
                        } else {
                            String::new()
                        },
                        ..crate::Observed::default()
                    })
                }),
            }
        },
    )
}

pub(super) fn of_jobs(mut jobs: Vec<crate::JobSpec>) -> Workload {
    jobs.sort_by_key(|job| job.submit);
    for (index, job) in jobs.iter_mut().enumerate() {
        job.id = format!("job \"{index}\", again");
    }
    let mut workload = workload(jobs);
    for group in &mut workload.cluster.node_groups {
        (group.cpu_cores, group.memory_gib) = (1e3, 1e4);
    }
    workload.cluster.tenants = ["a, b", "quote\"d", "plain"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: 2,
        })
        .into();
    let mut second = workload.classes[0].clone();
    second.name = "ResNet-50 (batch size 64), x2".into();
    second.speed = vec![0.1 + 0.2];
    workload.classes.push(second);
    workload
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_reads_back_equal(jobs in proptest::collection::vec(any_job(), 1..20), gzip in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(if gzip { "w.csv.gz" } else { "w.csv" });
        let workload = of_jobs(jobs);
        workload.write(&path).unwrap();
        prop_assert_eq!(Workload::read(&path).unwrap(), workload.clone());
        let first = std::fs::read(&path).unwrap();
        workload.write(&path).unwrap();
        prop_assert_eq!(std::fs::read(&path).unwrap(), first);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}", header in any::<bool>()) {
        let head = if header { "submit_s,num_gpus,run_time_s\n" } else { "" };
        let _ = refusal_or_jobs(format!("{head}{text}").as_bytes());
    }
}

fn refusal_or_jobs(bytes: &[u8]) -> Result<(Workload, crate::import::ImportReport), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, bytes).unwrap();
    let options = ImportOptions {
        cluster: Some(ClusterSpec::uniform(2, 4, 2)),
        ..ImportOptions::default()
    };
    import(&path, &options).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    refusal_or_jobs(text.as_bytes()).unwrap_err()
}

#[test]
fn columns_of_resources_are_written_only_where_a_job_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.csv");
    let mut workload = workload(vec![job("a", 0.0, 1, 5.0), job("b", 2.5, 2, 7.0)]);
    workload.write(&path).unwrap();
    let head = "job_id,submit_s,num_gpus,run_time_s,estimate_s,tenant,class,user,outcome";
    let plain = format!("{head}\na,0,1,5,,all,any,,unknown\nb,2.5,2,7,,all,any,,unknown\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), plain);
    workload.jobs[1].resources.gpu_milli = 250;
    workload.jobs[1].resources.cpu_cores = 1.5;
    workload.cluster.node_groups[0].cpu_cores = 16.0;
    workload.write(&path).unwrap();
    let more = format!(
        "{head},gpu_milli,gpu_memory_gib,cpu_cores,memory_gib\na,0,1,5,,all,any,,unknown,1000,0,0,0\n\
         b,2.5,2,7,,all,any,,unknown,250,0,1.5,0\n"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), more);
}

#[test]
fn columns_of_tasks_are_written_only_where_a_gang_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.csv");
    let mut workload = workload(vec![job("a", 0.0, 1, 5.0), job("b", 2.5, 4, 7.0)]);
    workload.jobs[1].resources.tasks = Tasks {
        gpus_per_task: 2,
        tasks_per_node_max: 1,
        nodes_max: 2,
    };
    workload.write(&path).unwrap();
    let head = "job_id,submit_s,num_gpus,run_time_s,estimate_s,tenant,class,user,outcome";
    let text = format!(
        "{head},gpus_per_task,tasks_per_node_max,nodes_max\na,0,1,5,,all,any,,unknown,1,0,0\n\
         b,2.5,4,7,,all,any,,unknown,2,1,2\n"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn tasks_that_are_left_empty_are_of_one_gpu_anywhere_and_bad_ones_are_refused() {
    let head = "submit_s,num_gpus,run_time_s,gpus_per_task,tasks_per_node_max,nodes_max\n";
    let (workload, _) = refusal_or_jobs(format!("{head}0,4,1,,,\n0,4,1,2,,\n").as_bytes()).unwrap();
    assert_eq!(workload.jobs[0].resources, Resources::WHOLE_GPU);
    assert_eq!(workload.jobs[1].resources.tasks, Tasks::of(2));
    for (row, said) in [
        ("0,4,1,0,,", "line 2, column gpus_per_task: `0`"),
        ("0,4,1,65,,", "line 2, column gpus_per_task: `65`"),
        ("0,4,1,2,1.5,", "line 2, column tasks_per_node_max: `1.5`"),
        ("0,4,1,2,,65536", "line 2, column nodes_max: `65536`"),
        (
            "0,5,1,2,,",
            "line 2, column num_gpus: `5` is not allowed here: allowed is a multiple of gpus_per_task, 2",
        ),
        // Nodes of four GPUs have no room for a task of eight.
        ("0,8,1,8,,", "jobs[0].resources"),
    ] {
        let text = refusal(&format!("{head}{row}\n"));
        assert!(text.contains(said), "{row}: {text}");
    }
}

#[test]
fn resources_that_are_left_empty_are_a_whole_gpu_and_bad_ones_are_refused() {
    let head = "submit_s,num_gpus,run_time_s,gpu_milli,cpu_cores\n";
    let (workload, _) = refusal_or_jobs(format!("{head}0,1,1,,\n0,1,1,500,\n").as_bytes()).unwrap();
    assert_eq!(workload.jobs[0].resources, Resources::WHOLE_GPU);
    assert_eq!(workload.jobs[1].resources.gpu_milli, 500);
    for (row, column) in [
        ("0,1,1,0,", "gpu_milli: `0`"),
        ("0,1,1,1001,", "gpu_milli: `1001`"),
        ("0,1,1,0.5,", "gpu_milli: `0.5`"),
        ("0,1,1,-1,", "gpu_milli: `-1`"),
        ("0,1,1,1000,-1", "cpu_cores: `-1`"),
        ("0,1,1,1000,NaN", "cpu_cores: `NaN`"),
        ("0,1,1,1000,inf", "cpu_cores: `inf`"),
    ] {
        let text = refusal(&format!("{head}{row}\n"));
        assert!(text.contains(&format!("line 2, column {column}")), "{text}");
    }
}

#[test]
fn three_columns_and_a_cluster_from_the_caller_are_enough() {
    let (workload, report) =
        refusal_or_jobs(b"run_time_s,submit_s,num_gpus,remark\r\n\r\n5,2.5,1,x\r\n7,1,8,\r\n").unwrap();
    assert_eq!(workload.jobs.len(), 2);
    assert_eq!(workload.jobs[0].run_time_s, 7.0);
    assert_eq!(workload.jobs[1].submit, Time(2_500_000));
    assert_eq!(
        report.account.rows_of("submitted before the row above it"),
        1,
        "{report}"
    );
}

#[test]
fn tenants_of_the_list_share_a_cluster_given_with_one_owner() {
    let (workload, _) = refusal_or_jobs(b"submit_s,num_gpus,run_time_s,tenant\n0,1,6,b\n1,1,2,a\n").unwrap();
    let quotas: Vec<_> = workload
        .cluster
        .tenants
        .iter()
        .map(|tenant| (tenant.name.as_str(), tenant.quota_gpus))
        .collect();
    assert_eq!(quotas, [("a", 2), ("b", 6)]);
}

#[test]
fn every_bad_value_is_refused_with_line_column_value_and_what_is_allowed() {
    let head = "job_id,submit_s,num_gpus,run_time_s,class,outcome\n";
    for (row, column, value) in [
        ("a,NaN,1,1,,", "submit_s", "`NaN`"),
        ("a,inf,1,1,,", "submit_s", "`inf`"),
        ("a,-1,1,1,,", "submit_s", "`-1`"),
        ("a,,1,1,,", "submit_s", "``"),
        ("a,0,0,1,,", "num_gpus", "`0`"),
        ("a,0,1.5,1,,", "num_gpus", "`1.5`"),
        ("a,0,9,1,,", "num_gpus", "allowed is 1 to 8"),
        ("a,0,99999999999,1,,", "num_gpus", "`99999999999`"),
        ("a,0,1,0,,", "run_time_s", "`0`"),
        ("a,0,1,1e300,,", "run_time_s", "`1e300`"),
        ("a,0,1,soon,,", "run_time_s", "`soon`"),
        ("a,0,1,1,nosuch,", "class", "one of any"),
        ("a,0,1,1,,lost", "outcome", "completed, failed"),
        (",0,1,1,,", "job_id", "printable"),
        ("x,0,1,1,,", "job_id", "line 2 has the same id"),
    ] {
        let text = refusal(&format!("{head}x,0,1,1,,\n{row}\n"));
        assert!(
            text.contains(&format!("line 3, column {column}")) && text.contains(value),
            "{row}: {text}"
        );
    }
}

#[test]
fn broken_files_are_refused_in_words() {
    assert!(refusal("").contains("the file is empty"));
    assert!(refusal("submit_s,num_gpus\n0,1\n").contains("no known header"));
    assert!(refusal("submit_s,num_gpus,run_time_s\n").contains("no job is left to run"));
    assert!(refusal("submit_s,num_gpus,run_time_s\n0,1\n").contains("2 fields and the header has 3"));
    assert!(refusal("submit_s,num_gpus,run_time_s,submit_s\n").contains("appears twice"));
    assert!(refusal("submit_s,num_gpus,run_time_s\n\"0,1,1\n").contains("not closed"));
    let mut bytes = b"submit_s,num_gpus,run_time_s\n0,1,".to_vec();
    bytes.push(0xff);
    let text = refusal_or_jobs(&bytes).unwrap_err();
    assert!(text.contains("line 2") && text.contains("not UTF-8"), "{text}");
    let long = format!("submit_s,num_gpus,run_time_s\n{}", "1".repeat(1 << 20));
    assert!(refusal(&long).contains("longer than 65536 bytes"));
}

#[test]
fn gzip_that_unpacks_to_far_more_than_a_list_of_jobs_is_refused_early() {
    let zip = |num_rows: usize| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"submit_s,num_gpus,run_time_s\n").unwrap();
        for _ in 0..num_rows {
            gzip.write_all(b"0,1,1\n").unwrap();
        }
        gzip.finish().unwrap()
    };
    // 24 MB of equal rows in 24 kB, 16 MiB of which are rows up to 2,796,198.
    let text = refusal_or_jobs(&zip(4_000_000)).unwrap_err();
    assert!(
        text.contains("more than 100 times its size") && text.contains("gunzip"),
        "{text}"
    );
    let line: usize = text
        .split("line ")
        .nth(1)
        .unwrap()
        .split([',', ':'])
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((2_700_000..2_900_000).contains(&line), "{text}");
    // Few equal rows are a list like any other.
    assert_eq!(refusal_or_jobs(&zip(10_000)).unwrap().0.jobs.len(), 10_000);
}

#[test]
fn a_fabric_that_cannot_be_is_refused_with_its_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("w.csv");
    std::fs::write(&jobs, "submit_s,num_gpus,run_time_s\n0,1,1\n").unwrap();
    let read = |fabric: &str| {
        let cluster = "gpu_types = [{ name = \"H100\", memory_gib = 80.0 }]\ntenants = [{ name = \"a\", quota_gpus = 8 }]\nnode_groups = [{ count = 2, gpus_per_node = 4, gpu_type = \"H100\", nodes_per_rack = 2 }]";
        let text = format!("[cluster]\n{cluster}\n{fabric}\n");
        std::fs::write(folder.path().join("w.cluster.toml"), text).unwrap();
        Workload::read(&jobs).map_err(|error| error.to_string())
    };
    let own = "fabric = { preset = \"hgx-h100-ndr\", between = { nics_per_node = 4 } }";
    assert_eq!(
        read(own).unwrap().cluster.fabric.unwrap().between.nics_per_node,
        4
    );
    for (fabric, parts) in [
        (
            "fabric = \"h100-ndr\"",
            vec!["line 5", "h100-ndr", "hgx-h100-ndr has all of them"],
        ),
        (
            "fabric = \"hgx-h100-ndr\"",
            vec!["fabric.between.nics_per_node = 8", "1 to 4", "node_groups[0]"],
        ),
        (
            "fabric = { between = {} }",
            vec!["line 5", "fabric.inside = nothing"],
        ),
        (
            "fabric = { preset = \"gavel\", between = { nic_gb_per_s = -2.0 } }",
            vec!["line 5", "fabric.between.nic_gb_per_s = -2", "0.001 to 100000"],
        ),
    ] {
        let text = read(fabric).unwrap_err();
        for part in parts {
            assert!(text.contains(part), "{fabric}: {text}");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_sidecar_without_an_end_is_read_up_to_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("w.csv");
    std::fs::write(&jobs, "submit_s,num_gpus,run_time_s\n0,1,1\n").unwrap();
    let sidecar = folder.path().join("w.cluster.toml");
    std::os::unix::fs::symlink("/dev/zero", &sidecar).unwrap();
    let refused = || Workload::read(&jobs).unwrap_err().to_string();
    assert!(refused().contains("larger than 16777216 bytes"), "{}", refused());
    std::fs::remove_file(&sidecar).unwrap();
    std::fs::File::create(&sidecar).unwrap().set_len(5 << 30).unwrap();
    assert!(refused().contains("larger than 16777216 bytes"), "{}", refused());
}

#[test]
fn damaged_gzip_is_told_apart_from_a_short_list() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"submit_s,num_gpus,run_time_s\n").unwrap();
    for index in 0..5000 {
        writeln!(gzip, "{index},1,{}", index * 7919 % 1000 + 1).unwrap();
    }
    let whole = gzip.finish().unwrap();
    assert_eq!(refusal_or_jobs(&whole).unwrap().0.jobs.len(), 5000);
    let text = refusal_or_jobs(&whole[..whole.len() / 2]).unwrap_err();
    assert!(text.contains("ends too early"), "{text}");
    let mut damaged = whole.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    let text = refusal_or_jobs(&damaged).unwrap_err();
    assert!(text.contains("damaged"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_to_a_gzip_makes_the_reader_panic(at in 0_usize..400, flip in 1_u8..=255, keep in 0_usize..400) {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"submit_s,num_gpus,run_time_s\n").unwrap();
        for index in 0..60 {
            writeln!(gzip, "{index},1,{}", index * 7919 % 1000 + 1).unwrap();
        }
        let mut bytes = gzip.finish().unwrap();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        bytes.truncate(keep.max(1));
        let _ = refusal_or_jobs(&bytes);
    }
}

#[test]
fn a_missing_cluster_and_a_bad_sidecar_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.csv");
    std::fs::write(&path, "submit_s,num_gpus,run_time_s\n0,1,1\n").unwrap();
    let text = Workload::read(&path).unwrap_err().to_string();
    assert!(text.contains("w.cluster.toml not found"), "{text}");
    std::fs::write(sidecar_path(&path), "name = \"x\"\nspeed = 1\n").unwrap();
    let text = Workload::read(&path).unwrap_err().to_string();
    assert!(text.contains("line 2") && text.contains("speed"), "{text}");
    assert!(matches!(
        Workload::read(&folder.path().join("none.csv")),
        Err(error) if error.system().is_some()
    ));
    assert!(Workload::read(folder.path()).is_err());
}

#[test]
fn workloads_that_are_not_valid_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.csv");
    let bad = workload(vec![job("a", 0.0, 99, 1.0)]);
    assert!(bad.write(&path).is_err());
    let mut unnamed = workload(vec![job("a", 0.0, 1, 1.0)]);
    unnamed.cluster.tenants[0].name = " x".into();
    assert!(
        unnamed
            .write(&path)
            .unwrap_err()
            .to_string()
            .contains("tenants[0].name")
    );
    assert!(!path.exists());
}

#[test]
fn the_examples_in_the_documentation_are_read() {
    let text = include_str!("../../../../docs/workload-file.md");
    let block = |fence: &str| {
        let (_, rest) = text.split_once(fence).unwrap();
        rest.split_once("```").unwrap().0.trim_start().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.csv");
    std::fs::write(&path, block("```csv")).unwrap();
    std::fs::write(sidecar_path(&path), block("```toml")).unwrap();
    let workload = Workload::read(&path).unwrap();
    assert_eq!((workload.name.as_str(), workload.jobs.len()), ("two-racks", 2));
}

#[test]
fn a_gang_of_a_list_without_classes_runs_at_speed_1_on_any_type_and_any_placement() {
    use pleach_scheduler::cluster::{Capabilities, Cluster, Slice};
    use pleach_scheduler::{Estimate, NodeId, Provenance};

    let folder = tempfile::tempdir().unwrap();
    let mut ours = workload(vec![job("a", 0.0, 2, 1000.0)]);
    ours.cluster = ClusterSpec::uniform(4, 2, 2);
    let mut other = ours.cluster.gpu_types[0].clone();
    other.name = "other".into();
    ours.cluster.gpu_types.push(other);
    let mut group = ours.cluster.node_groups[0].clone();
    group.gpu_type = "other".into();
    ours.cluster.node_groups.push(group);
    ours.cluster.tenants[0].quota_gpus = 16;
    let path = folder.path().join("w.csv");
    ours.classes[0].speed = vec![0.5, 2.0];
    ours.write(&path).unwrap();
    // Its sidecar without the classes.
    let text = std::fs::read_to_string(sidecar_path(&path)).unwrap();
    let mut table: toml::Table = text.parse().unwrap();
    assert!(table.remove("classes").is_some());
    std::fs::write(sidecar_path(&path), table.to_string()).unwrap();
    std::fs::write(&path, "submit_s,num_gpus,run_time_s\n0,2,1000\n").unwrap();
    let read = Workload::read(&path).unwrap();
    for nodes in [[0, 0], [0, 1], [0, 2], [4, 4], [4, 7]] {
        let mut cluster = Cluster::new(&read.cluster, &read.classes, Capabilities::DEFAULT).unwrap();
        let estimate_s = Estimate {
            value: 1000.0,
            provenance: Provenance::Oracle,
        };
        let request = pleach_scheduler::cluster::Submission {
            tenant: pleach_scheduler::TenantId(0),
            class: pleach_scheduler::ClassId(0),
            num_gpus: 2,
            estimate_s,
            resources: Resources::WHOLE_GPU,
        };
        let id = cluster.submit(request).unwrap();
        let slice = |node: u32, gpus: u64| Slice {
            node: NodeId(node),
            gpus,
        };
        let placement = match nodes {
            [one, two] if one == two => [slice(one, 0b11)].into_iter().collect(),
            [one, two] => [slice(one, 1), slice(two, 1)].into_iter().collect(),
        };
        cluster.start(id, placement);
        assert_eq!(cluster.job(id).rate, 1.0, "{nodes:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_device_is_no_place_for_a_list_and_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device");
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    let said = workload(vec![job("a", 0.0, 1, 5.0)])
        .write(&path)
        .unwrap_err()
        .to_string();
    assert!(said.contains("no device"), "{said}");
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing lies beside it"
    );
}
