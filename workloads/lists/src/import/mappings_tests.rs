use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::import::{Format, ImportOptions, import};

#[test]
fn every_mapping_of_the_folder_is_found_by_its_header_and_says_its_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(files, LISTS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for (name, mapping) in LISTS.iter() {
        assert!(
            !mapping.source.is_empty() && !mapping.headers.is_empty(),
            "{name}"
        );
        for header in &mapping.headers {
            let start = mapping.published.as_ref().map_or("", |of| of.ids_start.as_str());
            assert_eq!(of_header(header, Some(start)), Some(*name), "{header:?}");
            let mut longer = header.clone();
            longer.insert(0, "something else".into());
            assert_eq!(of_header(&longer, Some(start)), Some(*name), "{header:?}");
            assert_eq!(
                of_header(&header[1..], Some(start)).filter(|found| found == name),
                None
            );
        }
        let back = Mapping::of_text(name, &mapping.text()).unwrap();
        assert_eq!(&back, mapping, "{name}");
    }
}

fn read(text: &str) -> (crate::Workload, crate::import::ImportReport) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, text).unwrap();
    import(&path, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A queue in seconds is no partition, as issue trackers of both lists were asked.
#[test]
fn lists_of_acme_and_helios_are_read_as_published() {
    let (acme, report) = read(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
         a,u1,2,16,128,Pretrain,COMPLETED,2023-03-01 00:00:10+08:00,2023-03-01 00:05:10+08:00,2023-03-01 02:05:10+08:00,7200,300,1\n\
         b,u2,1,1,8,Evaluation,CANCELLED,2023-03-01 00:02:10+08:00,,2023-03-01 00:03:10+08:00,0,60,0\n",
    );
    assert_eq!((report.format, report.jobs), (Format::Mapped("acme"), 1));
    let job = &acme.jobs[0];
    assert_eq!(
        (job.num_gpus, job.run_time_s, job.resources.tasks.gpus_per_task),
        (16, 7200.0, 8)
    );
    assert_eq!(acme.classes[usize::from(job.class)].name, "Pretrain");
    assert!(
        job.observed
            .as_ref()
            .is_none_or(|observed| observed.partition.is_empty())
    );
    let (helios, report) = read(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
         1,u01,vc7xE,8,32,1,COMPLETED,2020-04-01 00:00:29,2020-04-01 00:00:41,2020-04-01 00:02:42,121,12\n\
         2,u01,vc7xE,1,5,1,CANCELLED,2020-04-01 00:01:02,None,2020-04-01 00:02:02,0,60\n",
    );
    assert_eq!((report.format, report.jobs), (Format::Mapped("helios"), 1));
    assert_eq!(helios.cluster.tenants[0].name, "vc7xE");
}
