//! Lists by hand, hostile ones, and the published ones.

use super::*;
use crate::functions::calls::Call;

fn read_files(files: &[(&str, &str)]) -> Result<Calls, Problem> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    read(&folder.path().join(files[0].0), Seed(1))
}

#[test]
fn our_lists_and_azures_of_2021_are_read_from_the_first_call_on() {
    let text = "arrival_s,function,run_s,cold_s,slices\n5,b,0.5,2,7\n4,a,0.25,,\n6,b,0,2,7\n";
    let list = read_files(&[("ours.csv", text)]).unwrap();
    let call = |at_us: u64, function: u32, run_us: u32| Call {
        at_us,
        function,
        run_us,
    };
    assert_eq!(
        list.calls,
        [
            call(0, 1, 250_000),
            call(1_000_000, 0, 500_000),
            call(2_000_000, 0, 1)
        ]
    );
    let b = Called {
        name: "b".into(),
        slices: 7,
        cold_s: Some(2.0),
    };
    assert_eq!((list.functions.len(), &list.functions[0]), (2, &b));
    assert_eq!(
        list.told(),
        [
            "3 rows read, 3 kept, 0 left out",
            "mended: its run time is below a microsecond: taken for one: 1 rows",
            "assumed: cold starts of 1 s"
        ]
    );
    // The median of an even number is the upper of the middle two.
    let work = list.work().unwrap();
    assert_eq!(work.functions[0].reference_us(), 500_000);
    assert_eq!(work.functions[0].cold_start_us(), 2_000_000);

    let text = "app,func,end_timestamp,duration\nx,f,10.5,0.5\nx,g,4.0,3.0\nx,f,1.0,2.0\n";
    let list = read_files(&[("2021.csv", text)]).unwrap();
    // Begun at 0 (it was before the list), 1 and 10.
    let times: Vec<u64> = list.calls.iter().map(|call| call.at_us).collect();
    assert_eq!(times, [0, 1_000_000, 10_000_000]);
    assert_eq!(
        list.account.rows_of("no run time, above an hour"),
        1,
        "{:?}",
        list.told()
    );
}

#[test]
fn counts_by_minute_are_drawn_within_their_minutes_and_percentiles() {
    let inv = "HashFunction,minute_1,minute_2,minute_3\nf,0,300,0\ng,1,0,2\nh,5,5,5\n";
    let head = "HashFunction,percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,\
        percentile_Average_75,percentile_Average_99,percentile_Average_100\n";
    let run = format!("{head}f,100,100,100,200,300,300,300\ng,7,7,7,7,7,7,7\n");
    let list = read_files(&[("day_inv.csv", inv), ("day_run.csv", &run)]).unwrap();
    let of = |number: u32| list.calls.iter().filter(move |call| call.function == number);
    assert_eq!((of(0).count(), of(1).count(), list.calls.len()), (300, 3, 303));
    assert_eq!(list.account.sums("rows"), "3 rows read, 2 kept, 1 left out");
    assert_eq!(list.account.rows_of("a function without run times"), 1);
    let first_us = of(1).map(|call| call.at_us).min().unwrap();
    assert_eq!(first_us, 0, "the first of all calls");
    // Between the first minute's end and the second's, 0 to 60 s after the first call more or less.
    assert!(of(0).all(|call| call.at_us <= 120_000_000));
    assert!(of(1).all(|call| call.run_us == 7_000));
    let below = of(0).filter(|call| call.run_us < 200_000).count();
    assert!((120..180).contains(&below), "a half below the median: {below}");
    let parts = list.parts(2, Seed(3));
    assert!(
        parts.iter().any(|part| part.len() == 300),
        "a function stays whole"
    );
}

const RUN_HEAD: &str = "HashApp,HashFunction,percentile_Average_0,percentile_Average_1,percentile_Average_25,\
    percentile_Average_50,percentile_Average_75,percentile_Average_99,percentile_Average_100\n";

/// Calls with the names of their functions.
fn named_calls(list: &Calls) -> Vec<(&str, u64, u32)> {
    let name = |call: &Call| &*list.functions[call.function as usize].name;
    let mut all: Vec<_> = list
        .calls
        .iter()
        .map(|call| (name(call), call.at_us, call.run_us))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn functions_of_one_name_in_two_applications_are_two_and_their_draws_are_their_names() {
    let text = "app,func,end_timestamp,duration\nx,f,10.5,0.5\ny,f,4.0,3.0\n";
    let list = read_files(&[("2021.csv", text)]).unwrap();
    let names: Vec<&str> = list.functions.iter().map(|called| &*called.name).collect();
    assert_eq!(names, ["x/f", "y/f"]);

    let rows = ["x,f,40,0\n", "y,f,0,30\n", "x,g,20,20\n"];
    let runs = "x,f,1,2,3,4,5,6,7\ny,f,10,20,30,40,50,60,70\nx,g,5,5,5,5,5,5,5\n";
    let read_in = |order: [usize; 3]| {
        let rows = order.map(|row| rows[row]).concat();
        let inv = format!("HashApp,HashFunction,minute_1,minute_2\n{rows}");
        read_files(&[("a_inv", &inv), ("a_run", &format!("{RUN_HEAD}{runs}"))]).unwrap()
    };
    let (one, other) = (read_in([0, 1, 2]), read_in([2, 1, 0]));
    assert_eq!(named_calls(&one), named_calls(&other));
    let (x, y) = ("x/f", "y/f");
    for (name, num, run_us) in [
        (x, 40, 1_000..=7_000),
        (y, 30, 10_000..=70_000),
        ("x/g", 40, 5_000..=5_000),
    ] {
        let calls = named_calls(&one).into_iter().filter(|call| call.0 == name);
        assert_eq!(calls.clone().count(), num, "{name}");
        assert!(calls.clone().all(|call| run_us.contains(&call.2)), "{name}");
    }
}

#[test]
fn requests_to_models_have_the_measured_switching_times() {
    let head = "gmt_create,predict_status,exec_time_seconds,checkpoint_model_version_id,num_lora\n";
    let text = format!(
        "{head}2024-11-15 16:57:50,SUCCEED,32.0,M0,0\n2024-11-15 16:57:40,SUCCEED,20,M0,2\n\
        2024-11-15 16:58:00,FAILED,1,M0,0\n2024-11-15 16:58:00,SUCCEED,0,M1,0\n"
    );
    let [base, lora] = [
        "timestamp_anon,value\n0,9000\n1,20000\n2,30000\n",
        "timestamp_anon,value\n0,4000\n",
    ];
    let list = read_files(&[
        ("requests.csv", &text),
        ("basemodel_update_latency_anon.csv", base),
        ("lora_update_latency_anon.csv", lora),
    ])
    .unwrap();
    let named: Vec<(&str, Option<f64>)> = list
        .functions
        .iter()
        .map(|one| (&*one.name, one.cold_s))
        .collect();
    assert_eq!(named, [("M0", Some(20.0)), ("M0+lora", Some(24.0))]);
    assert_eq!(
        (list.calls[0].run_us, list.calls[1].at_us),
        (20_000_000, 10_000_000)
    );
    assert_eq!(list.account.sums("rows"), "4 rows read, 2 kept, 2 left out");
    let alone = read_files(&[("requests.csv", &text)]).unwrap();
    assert!(alone.notes.contains(&"assumed: cold starts of 1 s".to_string()));
}

#[test]
fn what_is_wrong_is_named_with_line_and_column() {
    let inv = "HashFunction,minute_1\nf,x\n";
    let run = "HashFunction,percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,\
        percentile_Average_75,percentile_Average_99,percentile_Average_100\nf,1,1,1,1,1,1,1\n";
    let falling = run.replace("1,1,1,1,1,1,1", "2,1,1,1,1,1,1");
    let both = format!("{run}g,1,1,1,1,1,1,1\n");
    let many = "HashFunction,minute_1\nf,20000000\ng,1\n";
    let twice = [
        "HashFunction,minute_1\nf,1\nf,2\n",
        "HashApp,HashFunction,minute_1\nx,f,1\n",
        &format!("{run}f,1,1,1,1,1,1,1\n"),
    ];
    let requests = "gmt_create,exec_time_seconds,checkpoint_model_version_id,num_lora\n\
        2024-11-15 16:57:50,1,M0,0\n";
    let [late, early] =
        ["2064-11-15 16:57:50", "2014-11-15 16:57:50"].map(|time| format!("{requests}{time},1,M0,0\n"));
    let switches = format!("value\n{}", "0\n".repeat(1_000_001));
    let cases: [(&[(&str, &str)], &str); 17] = [
        (
            &[("a_inv", twice[0]), ("a_run", run)],
            "line 3, column HashFunction: `f`",
        ),
        (&[("a_inv", twice[1]), ("a_run", run)], "HashApp"),
        (
            &[("a_inv", inv), ("a_run", twice[2])],
            "line 3, column HashFunction: `f`",
        ),
        (
            &[("a", &late)],
            "line 3, column gmt_create: `2064-11-15 16:57:50`",
        ),
        (
            &[("a", &early)],
            "line 3, column gmt_create: `2014-11-15 16:57:50`",
        ),
        (
            &[("a", requests), ("basemodel_update_latency_anon.csv", &switches)],
            "basemodel_update_latency_anon.csv, line 1000002, column value: `0`",
        ),
        (
            &[("a", "arrival_s,function,run_s\n0,f,1\n1,f,-1\n")],
            "line 3, column run_s",
        ),
        (
            &[("a", "arrival_s,function,run_s\n0,f,nan\n")],
            "line 2, column run_s",
        ),
        (
            &[("a", "arrival_s,function,run_s\n1e12,f,1\n")],
            "line 2, column arrival_s",
        ),
        (&[("a", "arrival_s,function,run_s\n0,,1\n")], "column function"),
        (&[("a", "arrival_s,function,run_s\n")], "no call is left"),
        (&[("a", "arrival_s,run_s\n")], "function"),
        (&[("a_inv", inv), ("a_run", run)], "line 2, column minute_1"),
        (&[("a_inv", inv)], "beside"),
        (&[("a_inv", inv), ("a_run", &falling)], "do not fall"),
        (&[("a_inv", many), ("a_run", &both)], "more than 20000000 calls"),
        (&[("a", "instance_sn,deletion_time\n")], "import them as jobs"),
    ];
    for (files, expected) in cases {
        let error = read_files(files).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Counted in the files by a few lines of Python; of Alibaba's 26,823 requests 431 had not ended or failed.
#[test]
fn published_lists_are_read() {
    let traces: [(&str, usize, usize); 3] = [
        ("azure_functions_2021_sample/Azure2021_200.csv.gz", 199, 31),
        ("azure_functions_2019_sample/1000_inv.csv.gz", 15_143_134, 1_000),
        ("alibaba_genai_2026/lora_request_trace.csv.gz", 26_392, 128),
    ];
    for (file, num_calls, num_functions) in traces {
        let Some(path) = pleach_tests::data(&format!("traces/{file}")) else {
            continue;
        };
        let list = read(&path, Seed(1)).unwrap();
        assert_eq!(
            (list.calls.len(), list.functions.len()),
            (num_calls, num_functions),
            "{file}"
        );
        assert!(list.calls.is_sorted() && list.calls[0].at_us == 0);
        let sum: usize = list.parts(7, Seed(2)).iter().map(Vec::len).sum();
        assert_eq!(sum, list.calls.len());
    }
}
