//! Fair-share factors beside those that `sshare` printed.

use std::io::Read as _;

use pleach_dealing::slurm::{ROOT, Share, Tree};

use super::cases;

#[test]
fn from_the_use_that_sshare_prints_the_tree_has_the_factors_that_it_prints() {
    for (name, case) in cases() {
        let Some(priority) = case
            .config
            .priority
            .as_ref()
            .filter(|of| of.fair_share > 0 && of.fair_tree)
        else {
            continue;
        };
        let path = pleach_tests::data(&format!("slurm-schedules/{name}/sshare.txt.gz")).unwrap();
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap();
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
        let (mut num, mut num_same) = (0, 0);
        for sample in text.split("# ").skip(1) {
            let rows: Vec<Vec<&str>> = sample
                .lines()
                .skip(1)
                .map(|line| line.split('|').collect())
                .collect();
            let mut shares = case.config.shares.clone();
            shares.extend(
                (!shares
                    .iter()
                    .any(|share| share.user.is_empty() && share.account == ROOT))
                .then(|| Share {
                    account: ROOT.into(),
                    user: String::new(),
                    parent: String::new(),
                    shares: 1,
                    usage: 0,
                }),
            );
            for share in &mut shares {
                let row = rows
                    .iter()
                    .find(|row| row[0].trim() == share.account && row[1] == share.user);
                share.usage = row.map_or(0, |row| row[4].parse().unwrap());
            }
            let mut tree = Tree::of(&shares);
            tree.rank(priority.fair_tree);
            for row in rows.iter().filter(|row| !row[1].is_empty()) {
                let place = tree.member(row[0].trim(), row[1]);
                num += 1;
                num_same += usize::from((tree.factor(place) - row[7].parse::<f64>().unwrap()).abs() < 1e-6);
            }
        }
        println!("{name}: {num_same} of {num} factors");
        // It prints whole numbers: of users whose levels are nearly equal either may be first.
        assert!(
            num > 100 && num_same * 100 >= num * 99,
            "{name}: {num_same} of {num}"
        );
    }
}
