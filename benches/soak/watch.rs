//! The memory of the program over the run, and what its caches say that they hold of it.

use std::ops::Range;

use serde_json::{Value, json};

use super::super::Result;
use super::process::Service;

/// Parts of the run that have a figure of their own: in one of ten minutes, the minutes.
const PARTS: usize = 10;

/// The resident memory of one part of the run, in MiB.
#[derive(Debug, Default)]
struct Part {
    resident: Vec<f64>,
    /// Bytes and entries of all caches at its end.
    caches: (f64, f64),
}

impl Part {
    fn mean(&self) -> f64 {
        self.resident.iter().sum::<f64>() / self.resident.len().max(1) as f64
    }
}

#[derive(Debug)]
pub(crate) struct Watch(Vec<Part>);

impl Watch {
    pub(crate) fn new() -> Self {
        Self((0..PARTS).map(|_| Part::default()).collect())
    }

    /// Looks at the program; `share` of the run is over, from 0 to 1.
    pub(crate) async fn look(&mut self, service: &Service, http: &reqwest::Client, share: f64) -> Result<()> {
        let at = ((share * PARTS as f64) as usize).min(PARTS - 1);
        let resident = service.resident_mib()?;
        let metrics = http.get(format!("{}/metrics", service.url())).send().await?.text().await?;
        if let Some(part) = self.0.get_mut(at) {
            part.resident.push(resident);
            part.caches = (sum(&metrics, "toolrack_cache_bytes{"), sum(&metrics, "toolrack_cache_entries{"));
        }
        Ok(())
    }

    /// The mean of the resident memory in some parts.
    pub(crate) fn mean(&self, parts: Range<usize>) -> f64 {
        let parts = self.0.get(parts).unwrap_or_default();
        parts.iter().map(Part::mean).sum::<f64>() / parts.len().max(1) as f64
    }

    pub(crate) fn document(&self) -> Value {
        let row = |part: &Part| {
            let (bytes, entries) = part.caches;
            let caches = (bytes / 1024.0 / 10.24).round() / 100.0;
            json!({"resident_mib": part.mean().round(), "caches_mib": caches, "cache_entries": entries})
        };
        self.0.iter().map(row).collect()
    }
}

/// The sum of all series whose line begins like this.
fn sum(metrics: &str, start: &str) -> f64 {
    let rows = metrics.lines().filter(|row| row.starts_with(start));
    rows.filter_map(|row| row.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
