//! What the kernel knows of this process and of the disk under its database, read when the metrics are asked for.
//!
//! Names and meaning are those of the client libraries of Prometheus. What cannot be read is left out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::statvfs;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use super::table::{
    CPU_SECONDS, DISK_FREE, DISK_SIZE, MAX_FDS, Metric, OPEN_FDS, RESIDENT, START_TIME, VIRTUAL,
};

/// The folder of the database.
static DISK: OnceLock<PathBuf> = OnceLock::new();

/// Tells free bytes of the file system that holds this database file from now on.
pub fn watch_disk(database: &Path) {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    // A second database of the process would be a test's.
    drop(DISK.set(folder.unwrap_or(Path::new(".")).to_owned()));
}

/// Appends all that can be read.
pub(super) fn write(text: &mut String) {
    let stat = Stat::read();
    let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let disk = DISK.get().and_then(|folder| statvfs(folder).ok());
    let disk_bytes = |blocks: Option<u64>| Some((blocks? * disk.as_ref()?.f_frsize) as f64);
    for (metric, value) in [
        (&CPU_SECONDS, stat.as_ref().map(|stat| stat.cpu_seconds)),
        (&RESIDENT, kilobytes(&memory, "VmRSS:")),
        (&VIRTUAL, kilobytes(&memory, "VmSize:")),
        (&OPEN_FDS, open_files()),
        (&MAX_FDS, getrlimit(Resource::Nofile).current.map(|most| most as f64)),
        (&START_TIME, stat.as_ref().and_then(|stat| Some(boot_time()? + stat.started_seconds))),
        // What only the superuser may still take is not free for this program.
        (&DISK_FREE, disk_bytes(disk.as_ref().map(|disk| disk.f_bavail))),
        (&DISK_SIZE, disk_bytes(disk.as_ref().map(|disk| disk.f_blocks))),
    ] {
        write_metric(text, metric, value);
    }
}

fn write_metric(text: &mut String, metric: &Metric, value: Option<f64>) {
    let Some(value) = value else { return };
    let Metric { name, kind, help, .. } = metric;
    // Writing to a string does not fail.
    let _written = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}\n{name} {value}\n", kind.name());
}

/// What `/proc/self/stat` tells (proc(5)).
struct Stat {
    cpu_seconds: f64,
    /// Since the machine began.
    started_seconds: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::of(&std::fs::read_to_string("/proc/self/stat").ok()?, clock_ticks_per_second() as f64)
    }

    fn of(text: &str, ticks_per_second: f64) -> Option<Self> {
        // The name before it may hold anything, spaces and parentheses too.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // The first of these is the third field of the line; times of the user and the system are 14 and 15, the start is 22.
        let seconds = |field: usize| Some(fields.get(field - 3)?.parse::<f64>().ok()? / ticks_per_second);
        Some(Self { cpu_seconds: seconds(14)? + seconds(15)?, started_seconds: seconds(22)? })
    }
}

/// A row of `/proc/self/status` in bytes.
fn kilobytes(status: &str, row: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(row))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

fn open_files() -> Option<f64> {
    // The folder itself is open meanwhile.
    Some((std::fs::read_dir("/proc/self/fd").ok()?.count() as f64 - 1.0).max(0.0))
}

/// When the machine began, in Unix time; it does not change.
fn boot_time() -> Option<f64> {
    static BOOT: OnceLock<Option<f64>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn rows_of_the_kernel_are_read() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 3 0 1000 1 2";
        let stat = Stat::of(text, 100.0).unwrap();
        assert_eq!((stat.cpu_seconds, stat.started_seconds), (3.0, 10.0));
        assert!(Stat::of("7 (a) S 1", 100.0).is_none() && Stat::of("", 100.0).is_none());
        assert_eq!(kilobytes("VmSize:\t 20 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12_288.0));
        assert_eq!(kilobytes("VmSize:\t 20 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_and_its_disk_are_told() {
        watch_disk(Path::new("t.db"));
        let mut text = String::new();
        write(&mut text);
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_cpu_seconds_total") >= 0.0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(value("process_start_time_seconds") <= now + 1.0);
        assert!(value("toolrack_db_disk_size_bytes") >= value("toolrack_db_disk_free_bytes"));
        assert!(text.contains("# TYPE process_cpu_seconds_total counter\n"));
    }
}
