//! Small lists in each format, worked by hand.

use pleach_scheduler::Tasks;
use pleach_scheduler::cluster_spec::ClusterSpec;

use super::tests::of_text;
use super::*;
use crate::Outcome;

fn read(text: &str) -> (Workload, ImportReport) {
    let (workload, report) = of_text(text, &ImportOptions::default()).unwrap();
    assert_eq!(
        report.account.rows_read,
        report.jobs + report.account.left_out(),
        "{report}"
    );
    (workload, report)
}

pub(super) fn refusal(text: &str) -> String {
    of_text(text, &ImportOptions::default()).unwrap_err()
}

pub(super) const OPENB: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
                     scheduled_time\n";

#[test]
fn openb_pods_ask_for_shares_cores_memory_and_types() {
    let (workload, report) = read(&format!(
        "{OPENB}a,6000,12288,1,250,,LS,Running,100,460,160\nb,16000,32768,4,1000,T4|P100,BE,Succeeded,200,500,200\n\
         c,8000,1024,0,0,,BE,Running,300,400,300\nd,8000,1024,1,500,,LS,Pending,300,400,\n\
         e,1000,1024,1,500,H100,LS,Failed,300,400,300\nf,1000,1024,1,500,,LS,Failed,350,350,350\n"
    ));
    assert_eq!(report.format, Format::Mapped("openb"));
    // c asks for no GPU, d never ran, e for a type that the cluster lacks; f ran for 0 s.
    assert_eq!((report.account.rows_read, report.jobs), (6, 3), "{report}");
    assert_eq!(report.account.rows_of("run time below 1 s"), 1);
    let [a, b, f] = workload.jobs.as_slice() else {
        panic!("{report}");
    };
    assert_eq!(
        (a.run_time_s, a.resources.gpu_milli, a.outcome),
        (300.0, 250, Outcome::Unknown)
    );
    assert_eq!((a.resources.cpu_cores, a.resources.memory_gib), (6.0, 12.0));
    // Per GPU: 16 cores and 32 GiB over four.
    assert_eq!(
        (b.num_gpus, b.resources.cpu_cores, b.resources.memory_gib),
        (4, 4.0, 8.0)
    );
    assert_eq!((b.outcome, f.outcome), (Outcome::Completed, Outcome::Failed));
    // A pod lies on one node.
    assert_eq!((a.resources.tasks, b.resources.tasks), (Tasks::ANY, Tasks::of(4)));
    let speeds: Vec<_> = workload
        .cluster
        .gpu_types
        .iter()
        .map(|gpu| gpu.name.as_str())
        .collect();
    let class = &workload.classes[usize::from(b.class)];
    for (name, speed) in speeds.iter().zip(&class.speed) {
        assert_eq!(*speed, f64::from(u8::from(matches!(*name, "T4" | "P100"))));
    }
}

#[test]
fn a_cluster_that_models_no_cores_forgets_them_and_a_small_one_excludes() {
    let text = format!(
        "{OPENB}a,6000,12288,1,250,,LS,Running,100,460,160\nb,64000,1024,1,250,,LS,Running,100,460,160\n"
    );
    let mut options = ImportOptions {
        cluster: Some(ClusterSpec::uniform(1, 4, 1)),
        ..ImportOptions::default()
    };
    let (workload, report) = of_text(&text, &options).unwrap();
    assert_eq!(
        (
            workload.jobs[0].resources.cpu_cores,
            workload.jobs[0].resources.memory_gib
        ),
        (0.0, 0.0)
    );
    assert_eq!(report.account.rows_of("asks for CPU cores"), 2);
    if let Some(cluster) = &mut options.cluster {
        (
            cluster.node_groups[0].cpu_cores,
            cluster.node_groups[0].memory_gib,
        ) = (32.0, 64.0);
    }
    let (workload, report) = of_text(&text, &options).unwrap();
    assert_eq!(
        (workload.jobs.len(), workload.jobs[0].resources.cpu_cores),
        (1, 6.0)
    );
    assert_eq!(
        report.account.rows_of("asks for more CPU or memory"),
        1,
        "{report}"
    );
}

#[test]
fn only_mended_rows_that_became_jobs_are_counted() {
    // 2 and 4 are raised to a second; 5 comes before the row above it.
    let text =
        "job_id,arrival_s,service_sec,gpu_count\n1,100,60,1\n2,200,0,1\n3,300,60,1\n4,400,0,1\n5,350,60,1\n";
    let of = |max_jobs, to_s| {
        let options = ImportOptions {
            max_jobs,
            to_s,
            ..ImportOptions::default()
        };
        let (_, report) = of_text(text, &options).unwrap();
        let late = report.account.rows_of("submitted before the row above it");
        (report.jobs, report.account.rows_of("run time below 1 s"), late)
    };
    assert_eq!(of(None, None), (5, 2, 1));
    assert_eq!(of(Some(4), None), (4, 1, 1));
    assert_eq!(of(Some(3), None), (3, 1, 0));
    assert_eq!(of(None, Some(150.0)), (1, 0, 0));
}

#[test]
fn pai_and_venus_share_columns_and_are_told_apart_by_the_ids() {
    let head = "job_id,arrival_s,service_sec,gpu_count\n";
    let (workload, report) = read(&format!(
        "{head}ali-x-worker#1,100,172800,2\nali-y-ps#2,160,60,1\n"
    ));
    assert_eq!(
        (report.format, report.account.rows_of("run time cut at 48 h")),
        (Format::Mapped("pai"), 1)
    );
    assert_eq!(
        (workload.jobs[1].run_time_s, workload.jobs[1].outcome),
        (60.0, Outcome::Completed)
    );
    assert_eq!(
        read(&format!("{head}17,100,60,2\n")).1.format,
        Format::Mapped("venus")
    );
    assert!(refusal(&format!("{head}ali-x#1,0,60,1\n17,100,60,2\n")).contains("line 3, column job_id: `17`"));
    assert!(refusal(&format!("{head}ali-x#1,0,-60,1\n")).contains("column service_sec: `-60`"));
}

#[test]
fn lingjun_jobs_run_in_the_published_racks() {
    let head = "#job id,arrival time (sec),topology,shape,size,duration (sec)\n";
    let (workload, report) = read(&format!(
        "{head}0,60.0,CLOS,512,512,0.0\n1,120.0,CLOS,8,8,600.0\n"
    ));
    assert_eq!(
        (report.format, report.account.rows_of("run time below 1 s")),
        (Format::Mapped("lingjun"), 1)
    );
    assert_eq!(
        (workload.jobs[0].num_gpus, workload.jobs[1].submit.as_secs_f64()),
        (512, 60.0)
    );
    assert!(refusal(&format!("{head}0,soon,CLOS,8,8,5\n")).contains("column arrival time (sec): `soon`"));
    assert!(refusal(&format!("{head}0,0,CLOS,8,0,5\n")).contains("column size: `0`"));
}

#[test]
fn thetagpus_allocations_are_nodes_and_its_wall_times_estimates() {
    let head = "job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,\
                new_status\n";
    let (workload, report) = read(&format!(
        "{head}1,7,9,0,2.0,0,2.0,1000.0,5.0,50.5,3600.0,0.1,Pass\n2,0,0,0,1.0,0,1.0,1010.0,5.0,99.0,600.0,0.1,Killed\n"
    ));
    assert_eq!(report.format, Format::Mapped("thetagpu"));
    let (first, second) = (&workload.jobs[0], &workload.jobs[1]);
    assert_eq!(
        (first.num_gpus, first.run_time_s, first.estimate_s),
        (16, 50.5, Some(3600.0))
    );
    assert_eq!((first.user.as_deref(), second.user.as_deref()), (Some("7"), None));
    assert_eq!(
        (first.outcome, second.outcome),
        (Outcome::Completed, Outcome::Killed)
    );
    let names: Vec<_> = workload
        .cluster
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    assert_eq!(names, ["9", "unassigned"]);
    let text = refusal(&format!("{head}1,7,9,0,2,0,2,0,5,50,-1,0.1,Pass\n"));
    assert!(text.contains("column wall_time: `-1`"), "{text}");
    let text = refusal(&format!("{head}1,7,9,0,2,0,2,0,5,50,60,0.1,Timeout\n"));
    assert!(text.contains("Failed, Killed, Pass"), "{text}");
}

#[test]
fn dlrms_instances_are_cut_to_the_window_and_counted() {
    let head = "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,\
                memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,\
                scheduled_time,deletion_time\n";
    let row = |id: &str, gpus: u32, times: &str| {
        format!("{id},HN,app,8,8,{gpus},{gpus},25,25,40,40,1,1,-1,{times}\n")
    };
    let text = [
        head.to_owned(),
        row("a", 1, "100,110,210"),
        row("b", 1, ",,300"),
        row("c", 1, "2678000,2678100,"),
        row("d", 0, "1,2,3"),
    ];
    let (workload, report) = read(&text.concat());
    assert_eq!((report.format, report.jobs), (Format::Mapped("dlrm"), 3));
    // b ran from second 0 to 300, a from 110 to 210, c from 2,678,100 to the end of the 31st day at 2,678,400.
    let spans: Vec<_> = workload
        .jobs
        .iter()
        .map(|job| (job.submit.as_secs_f64(), job.run_time_s))
        .collect();
    assert_eq!(spans, [(0.0, 300.0), (100.0, 100.0), (2_678_000.0, 300.0)]);
    assert_eq!(
        (
            report.account.rows_of("created before"),
            report.account.rows_of("outlives the list")
        ),
        (1, 1)
    );
    assert_eq!(
        (
            workload.jobs[0].resources.cpu_cores,
            workload.jobs[0].resources.memory_gib
        ),
        (8.0, 40.0)
    );
    let text = refusal(&(head.to_owned() + &row("a", 1, "100,50,210")));
    assert!(
        text.contains("creation_time <= scheduled_time <= deletion_time"),
        "{text}"
    );
    assert!(refusal(&(head.to_owned() + &row("a", 1, "-5,,"))).contains("column creation_time: `-5`"));
}

#[test]
fn tiresias_muri_and_chronus_differ_by_columns_and_by_the_unit_of_time() {
    let (seconds, report) =
        read("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,2,30,9,vgg19,90,1\n");
    assert_eq!(
        (report.format, seconds.jobs[0].run_time_s),
        (Format::Mapped("tiresias"), 90.0)
    );
    assert_eq!(seconds.classes[0].name, "vgg19");
    let head = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
                resource_time_0,resource_time_1,resource_time_2,priority\n";
    let (milli, report) = read(&format!(
        "{head}0,2,0,9,bert,4,90000,1,2,3,4,5,0\n1,2,1500,9,gpt2,4,500,1,2,3,4,5,0\n"
    ));
    assert_eq!(
        (report.format, milli.jobs[0].run_time_s),
        (Format::Mapped("muri"), 90.0)
    );
    assert_eq!(
        (milli.jobs[1].submit.as_secs_f64(), milli.jobs[1].run_time_s),
        (1.5, 1.0)
    );
    let head = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                expect_value_list,best_effort,job_type\n";
    let text = format!(
        "{head}0,vc_b,1,10,9,vgg16,90,1,159-189,10-8,0,soft\n1,vc_a,0,10,9,vgg16,90,1,1,1,0,strict\n"
    );
    let (minutes, report) = read(&text);
    assert_eq!(
        (report.format, minutes.jobs[0].run_time_s),
        (Format::Mapped("chronus"), 5400.0)
    );
    assert_eq!(report.account.rows_of("asks for no GPU"), 1);
    assert_eq!(minutes.cluster.tenants[0].name, "vc_b");
    let text = refusal(&format!("{head}0,vc_b,1,10,9,,90,1,159,10,0,soft\n"));
    assert!(text.contains("column model_name: ``"), "{text}");
    let text = refusal(&format!("{head}0,vc_b,1,1e9,9,x,90,1,159,10,0,soft\n"));
    assert!(
        text.contains("column submit_time: `1e9`") && text.contains("give minutes"),
        "{text}"
    );
}

#[test]
fn pollux_lists_get_the_middle_of_the_published_category_and_say_so() {
    let head = "name,time,application,num_replicas,batch_size\n";
    let (workload, report) = read(&format!(
        "{head}bert-0,10,bert,4,384\nimagenet-1,20.5,imagenet,16,800\n"
    ));
    assert_eq!(report.format, Format::Mapped("pollux"));
    // sqrt(1 x 10) = 3.162 GPU h over 4 GPUs; sqrt(100 x 1000) = 316.2 GPU h over 16.
    assert!((workload.jobs[0].run_time_s - 3600.0 * 3.162_277_66 / 4.0).abs() < 1e-3);
    assert!((workload.jobs[1].run_time_s - 3600.0 * 316.227_766 / 16.0).abs() < 1e-2);
    assert_eq!(report.account.rows_of("run time not in the list"), 2);
    let text = refusal(&format!("{head}gpt-0,10,gpt,4,384\n"));
    assert!(
        text.contains("column application: `gpt`") && text.contains("no run times"),
        "{text}"
    );
    assert!(refusal(&format!("{head}bert-0,10,bert,0,384\n")).contains("column num_replicas: `0`"));
}

#[test]
fn rubicks_jobs_ask_for_cpus_and_belong_to_a_service_level() {
    let head =
        "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n";
    let (workload, report) = read(&format!(
        "{head}t5-0,0,30,t5,4,32,0,ga,9,1\nvit-1,5,0.5,vit,1,8,0,zero-dp,9,0\n"
    ));
    assert_eq!(
        (report.format, report.account.rows_of("run time below 1 s")),
        (Format::Mapped("rubick"), 1)
    );
    assert_eq!(workload.jobs[0].resources.cpu_cores, 8.0);
    let names: Vec<_> = workload
        .cluster
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    assert_eq!(names, ["best-effort", "guaranteed"]);
    assert!(refusal(&format!("{head}a,0,30,t5,4,32,0,ga,9,2\n")).contains("column is_sla: `2`"));
    // A class is an application and its plan; a cut model brings what follows from it.
    let (workload, _) = read(&format!(
        "{head}a,0,30,llama30,24,192,1.25,641,9,1\nb,0,30,llama30,48,384,1.25,344,9,1\nc,0,30,llama7,8,64,0,zero-offload,9,0\n"
    ));
    let classes: Vec<_> = workload.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(classes, ["llama30 6x4x1", "llama30 3x4x4", "llama7 zero-offload"]);
    let [first, second, offloaded] = &workload.classes[..] else {
        panic!("{classes:?}");
    };
    // 32.5 billion parameters of 14 bytes in GiB; more stages leave less of them on each GPU.
    assert!((first.state_gib - 424.1).abs() < 0.2, "{}", first.state_gib);
    // 18 bytes of them on each of 6 x 4 GPUs; of 3 x 4, four of which divide 12 bytes, 6 + 12/4 bytes: the same.
    assert!(
        (first.gpu_memory_gib - 26.05).abs() < 0.01,
        "{}",
        first.gpu_memory_gib
    );
    assert!((second.gpu_memory_gib - first.gpu_memory_gib).abs() < 1e-6);
    assert!(second.step.is_some() && offloaded.step.is_none() && offloaded.state_gib == 0.0);
    let text = refusal(&format!("{head}a,0,30,llama30,40,320,1.25,344,9,1\n"));
    for part in [
        "line 2",
        "column exec_plan: `344`",
        "three digits whose product is 40",
        "stages",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(refusal(&format!("{head}a,0,30,t5,4,-1,0,ga,9,1\n")).contains("column num_cpus: `-1`"));
}

#[test]
fn shockwaves_jobs_run_for_the_time_that_the_list_states() {
    let row = |mode: &str, job_type: &str, duration: &str| {
        format!("{job_type}\tpython3 x\tdir\t-n\t1\t500\t2\t{mode}\t1\t-1.0\t{duration}\t55\n")
    };
    let (workload, report) = read(&row("gns", "ResNet-18 (batch size 32)", "3600"));
    assert_eq!((report.format, report.jobs), (Format::Shockwave, 1));
    assert_eq!(
        (workload.jobs[0].run_time_s, workload.jobs[0].num_gpus),
        (3600.0, 2)
    );
    let first = row("gns", "LM (batch size 20)", "5");
    for (bad, says) in [
        (
            row("gns", "LM (batch size 20)", "-5"),
            "line 2, column duration_s: `-5`",
        ),
        (row("gns", "GPT-9", "5"), "line 2, column job_type: `GPT-9`"),
        (
            row("wild", "LM (batch size 20)", "5"),
            "line 2, column mode: `wild`",
        ),
        (
            "LM (batch size 20)\t1\n".to_owned(),
            "2 fields and the header has 12",
        ),
    ] {
        let text = refusal(&(first.clone() + &bad));
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn batch_logs_take_processors_as_gpus_and_requested_times_as_estimates() {
    let log = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 32\n;\n\
               1 0 10 100 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1\n\
               2  5 -1   0  4 -1 -1 -1 -1 -1 5 -1 1 1 1 1 -1 -1\n\
               3 6 -1 -1 4 -1 -1 4 60 -1 5 3 1 1 1 1 -1 -1\n\
               4 7 -1 50 -1 -1 -1 -1 60 -1 0 3 1 1 1 1 -1 -1\n\
               ; a remark in between\n\
               5 8 -1 50 2 -1 -1 2 60 -1 3 3 1 1 1 1 -1 -1\n";
    let (workload, report) = read(log);
    assert_eq!(
        (report.format, report.account.rows_read, report.jobs),
        (Format::Swf, 5, 2),
        "{report}"
    );
    let (first, second) = (&workload.jobs[0], &workload.jobs[1]);
    assert_eq!(
        (first.num_gpus, first.run_time_s, first.estimate_s),
        (16, 100.0, Some(600.0))
    );
    assert_eq!(
        (first.user.as_deref(), first.outcome),
        (Some("3"), Outcome::Completed)
    );
    // What was given counts where nothing was asked for; a run time of 0 is raised.
    assert_eq!(
        (
            second.num_gpus,
            second.run_time_s,
            second.estimate_s,
            second.user.as_deref()
        ),
        (4, 1.0, None, None)
    );
    assert_eq!(report.account.rows_of("part of a job"), 1);
    assert_eq!(report.account.rows_of("its processors or its run time"), 2);
    // 32 processors on 4 nodes; placement costs nothing.
    let group = &workload.cluster.node_groups[0];
    assert_eq!((group.count, group.gpus_per_node), (4, 8));
    assert_eq!(workload.classes[0].locality.cross_rack, 1.0);
}

#[test]
fn batch_logs_without_comments_or_with_bad_fields_are_told_apart() {
    let row = "1 0 -1 100 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1";
    // Two jobs of 1,600 processor seconds in 10,000 s need less than one processor; the largest gang needs 16.
    let (workload, _) = read(&format!(
        "{row}\n2 10000 -1 100 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1\n"
    ));
    assert_eq!(workload.cluster.num_gpus(), 16);
    for (bad, says) in [
        (
            "2 0 -1 x 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1",
            "line 2, column run_s: `x`",
        ),
        (
            "2 0 -1 nan 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1",
            "line 2, column run_s: `nan`",
        ),
        (
            "2 -9e9 -1 5 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1",
            "column submit_s: `-9e9`",
        ),
        (
            "2 0 -1 5 8 -1 -1 1.5 600 -1 1 3 1 1 1 1 -1 -1",
            "column requested_processors: `1.5`",
        ),
        (
            "2 0 -1 5 8 -1 -1 1 600 -1 9 3 1 1 1 1 -1 -1",
            "column status: `9`",
        ),
        (
            "1 0 -1 5 8 -1 -1 1 600 -1 1 3 1 1 1 1 -1 -1",
            "line 1 has the same id",
        ),
        (
            "2 0 -1 5 8 -1 -1 1 600 -1 1 3 1 1 1 1 -1",
            "17 fields and the header has 18",
        ),
    ] {
        let text = refusal(&format!("{row}\n{bad}\n"));
        assert!(text.contains(says), "{text}");
    }
    assert!(refusal("; only comments\n").contains("no job is left"));
}

pub(super) const EVA_START: &str = "{\n  \"0\": {\n    \"name\": \"resnet18[0]\", \"arrival_time\": 960, \"duration\": 600,\n    \
                         \"tasks\": {\"0\": {\"name\": \"n\", \"demand\": {\"any\": [1, 12, 16]}}}\n  }";

#[test]
fn evas_tasks_are_one_gang() {
    let text = format!(
        "{EVA_START},\n\"1\": {{\"name\": \"gcn\", \"arrival_time\": 990, \"duration\": 60, \"tasks\": {{\"1\": \
         {{\"demand\": {{\"any\": [2, 4, 15]}}}}, \"2\": {{\"demand\": {{\"any\": [2, 8, 15]}}}}}}}},\n\"2\": \
         {{\"name\": \"openfoam\", \"arrival_time\": 991, \"duration\": 60, \"tasks\": {{\"3\": {{\"demand\": \
         {{\"any\": [0, 8, 15]}}}}}}}}\n}}\n"
    );
    let (workload, report) = read(&text);
    assert_eq!(
        (report.format, report.account.rows_read, report.jobs),
        (Format::Eva, 3, 2)
    );
    let gang = &workload.jobs[1];
    // 4 + 8 vCPU over four GPUs of two tasks.
    assert_eq!(
        (gang.num_gpus, gang.resources.cpu_cores, gang.resources.memory_gib),
        (4, 3.0, 7.5)
    );
    assert_eq!(gang.resources.tasks, Tasks::of(2));
    assert_eq!(workload.classes[0].name, "resnet18");
}
