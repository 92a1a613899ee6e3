//! The debuggers and tracers that podbench knows: the seat looks for them, the launcher says how
//! each is called.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debugger {
    /// The program's name.
    pub name: &'static str,
    /// The words after the program's name that take hold of process `PID`; `None`: it attaches to none.
    attach: Option<&'static str>,
    /// The words between the program's name and the program that it is to start.
    launch: &'static str,
}

/// All of them, the most telling first. gdb takes files from its own root unless it is told where the
/// target's is, and then shows a backtrace of question marks.
pub const DEBUGGERS: [Debugger; 5] = [
    Debugger { name: "gdb", attach: Some("-iex 'set sysroot /proc/PID/root' -p PID"), launch: "" },
    Debugger { name: "lldb", attach: Some("-p PID"), launch: "" },
    Debugger { name: "dlv", attach: Some("attach PID"), launch: "exec" },
    Debugger { name: "rr", attach: None, launch: "record" },
    Debugger { name: "strace", attach: Some("-p PID"), launch: "" },
];

impl Debugger {
    /// The command that takes hold of a running process.
    #[must_use]
    pub fn attach(&self, pid: u32) -> Option<String> {
        self.attach.map(|words| format!("{} {}", self.name, words.replace("PID", &pid.to_string())))
    }

    /// The command that starts a program under it.
    #[must_use]
    pub fn launch(&self, program: &str) -> String {
        [self.name, self.launch, program].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_debugger_is_called_as_its_manual_says() {
        let attach: Vec<_> = DEBUGGERS.iter().filter_map(|d| d.attach(7)).collect();
        assert_eq!(
            attach,
            ["gdb -iex 'set sysroot /proc/7/root' -p 7", "lldb -p 7", "dlv attach 7", "strace -p 7"]
        );
        let launch: Vec<_> = DEBUGGERS.iter().map(|d| d.launch("./x")).collect();
        assert_eq!(launch, ["gdb ./x", "lldb ./x", "dlv exec ./x", "rr record ./x", "strace ./x"]);
    }
}
