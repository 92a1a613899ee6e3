//! What concerns a whole node: `./dev test` runs these alone, after the others, and only on the
//! project's own cluster.

use std::process::Command;
use std::time::{Duration, Instant};

use podbench_test_support::cluster::root;
use podbench_test_support::process::{eventually, run};

use crate::world::{restricted, text};

/// A daemon of a node that is stopped, and started again on drop.
struct Stopped {
    node: String,
    daemon: &'static str,
}

fn fault(args: &[&str]) {
    let mut command = Command::new(root().join("tests/cluster/faults.sh"));
    command.args(args);
    run(command).expect_code(0);
}

impl Stopped {
    fn new(node: &str, daemon: &'static str) -> Self {
        let node = node.trim_start_matches("node").to_owned();
        fault(&["stop", &node, daemon]);
        Self { node, daemon }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        fault(&["start", &self.node, self.daemon]);
    }
}

#[test]
fn a_node_whose_kubelet_is_gone_is_named_and_its_seat_is_entered_again_later() {
    let (_ns, person) = restricted("kubelet", &["odd-ids"]);
    let first = person.attach(&["odd-ids"]);
    let node = text(&first, "/pod/node").to_owned();
    {
        let _gone = Stopped::new(&node, "kubelet");
        let start = Instant::now();
        let said = person.podbench(&["attach", "odd-ids"]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.stderr.contains(&node) && said.stderr.contains("try: "), "{}", said.stderr);
        assert!(said.stderr.contains("the API server can't reach the pod's node"), "{}", said.stderr);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        // Landing: the write is taken, and nobody starts it.
        let said = person.podbench(&["attach", "odd-ids", "--new", "--timeout", "8"]);
        assert_eq!(said.code, 124, "{said:?}");
        assert!(said.stderr.contains(&node) && said.stderr.contains("podbench-2"), "{}", said.stderr);
    }
    // For about a second a kubelet that is back knows no pod yet.
    let again = eventually("the seat answers again", Duration::from_secs(30), || {
        let said = person.podbench(&["attach", "odd-ids", "-o", "json"]);
        (said.code == 0).then(|| said.json())
    });
    assert_eq!(again.pointer("/seat/reused"), Some(&true.into()), "{again:#}");
}
