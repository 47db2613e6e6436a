//! When every attempt failed over a name that may mean several things, a person can say which.

use super::Trouble;

/// What a person can choose from: the names that the last fault leaves open. Nothing if it leaves no choice.
pub fn choices(trouble: &Trouble) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for finding in trouble.findings.iter().filter(|f| f.subject == trouble.subject) {
        for fix in &finding.fixes {
            let name = fix.edits.iter().map(|e| e.text.trim()).find(|t| !t.is_empty() && !t.contains(' '));
            if let Some(name) = name
                && !out.iter().any(|o| o == name)
            {
                out.push(name.to_string());
            }
        }
    }
    for (_, held) in &trouble.values {
        out.extend(held.iter().take(5).cloned());
    }
    if out.len() < 2 { Vec::new() } else { out }
}
