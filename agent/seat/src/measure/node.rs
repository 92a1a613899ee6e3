//! The node's kernel. Yama's setting is per node and may change: never kept, always read.

use podbench_contract::measurement::Node;
use podbench_contract::reading::Reading;

use crate::proc;

/// Reads it.
pub(crate) fn read() -> Node {
    let uname = rustix::system::uname();
    Node {
        kernel: Reading::Read(uname.release().to_string_lossy().into_owned()),
        machine: uname.machine().to_string_lossy().into_owned(),
        yama: proc::number("/proc/sys/kernel/yama/ptrace_scope"),
        lsm: proc::reading("/sys/kernel/security/lsm").map(|l| l.trim_end().to_owned()),
    }
}
