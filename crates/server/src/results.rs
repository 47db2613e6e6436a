//! Rows that are fetched page by page. They are kept for a while, for the user who asked, within bounds.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use querymend_sql::{Cell, Rows};

use crate::http::{Kind, kinds};
use crate::sync::Mutex;

/// How long rows wait for the next page.
const AGE: Duration = Duration::from_secs(300);
/// Bytes that are kept, of all users together.
const MOST_BYTES: usize = 256 << 20;
/// Results of one user.
const MOST_OF_ONE: usize = 8;

/// Results of which pages are still to be fetched.
#[derive(Default)]
pub struct Results {
    kept: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    /// After how many changes of the rules it was last cleared.
    rules: u64,
    results: HashMap<String, Kept>,
}

struct Kept {
    user: String,
    rows: Arc<Rows>,
    kinds: Arc<[Kind]>,
    bytes: usize,
    at: Instant,
}

/// Some rows of a result.
#[derive(Debug, Clone)]
pub struct Page {
    /// The rows.
    pub rows: Rows,
    /// The types of the columns of the whole result, of which this is a part.
    pub kinds: Option<Arc<[Kind]>>,
    /// By which the next page is fetched; nothing if this is the last.
    pub cursor: Option<String>,
}

impl Results {
    /// The first page of a result that was asked for after so many changes of the rules. What follows is kept, where anything
    /// does, unless the rules have changed since.
    pub fn first(&self, user: &str, rules: u64, rows: Rows, size: usize) -> Page {
        if rows.rows.len() <= size {
            return Page { rows, kinds: None, cursor: None };
        }
        let id = querymend::trace_id();
        let rows = Arc::new(rows);
        let kinds: Arc<[Kind]> = kinds(&rows).into();
        let page = page(&id, &rows, &kinds, 0, size);
        let mut shelf = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if rules < shelf.rules {
            return page;
        }
        let kept = &mut shelf.results;
        kept.retain(|_, one| one.at.elapsed() < AGE);
        let oldest = |kept: &HashMap<String, Kept>, user: &str| {
            let own = kept.iter().filter(|(_, one)| one.user == user);
            own.min_by_key(|(_, one)| one.at).map(|(id, _)| id.clone())
        };
        while kept.values().filter(|one| one.user == user).count() >= MOST_OF_ONE {
            let Some(id) = oldest(kept, user) else { break };
            kept.remove(&id);
        }
        let bytes = size_of_rows(&rows);
        while !kept.is_empty() && kept.values().map(|one| one.bytes).sum::<usize>() + bytes > MOST_BYTES {
            // Whoever holds most makes room, so that nobody takes it from others.
            let mut held: HashMap<&str, usize> = HashMap::from([(user, bytes)]);
            kept.values().for_each(|one| *held.entry(&one.user).or_default() += one.bytes);
            let owning = |user: &str| kept.values().any(|one| one.user == user);
            let most = held.into_iter().filter(|(user, _)| owning(user)).max_by_key(|(_, bytes)| *bytes);
            let Some(id) = most.and_then(|(user, _)| oldest(kept, user)) else { break };
            kept.remove(&id);
        }
        kept.insert(id, Kept { user: user.to_owned(), rows, kinds, bytes, at: Instant::now() });
        page
    }

    /// Lets go of all that was asked for before so many changes of the rules, also of what is still on its way.
    pub fn clear(&self, rules: u64) {
        let mut shelf = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.rules = shelf.rules.max(rules);
        shelf.results.clear();
    }

    /// A further page; nothing if the cursor is not this user's, or too old.
    pub fn next(&self, user: &str, cursor: &str, size: usize) -> Option<Page> {
        let (id, from) = cursor.rsplit_once('.')?;
        let from: usize = from.parse().ok()?;
        let shelf = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let one = shelf.results.get(id).filter(|one| one.user == user && one.at.elapsed() < AGE)?;
        if from >= one.rows.rows.len() {
            return None;
        }
        let (rows, kinds) = (Arc::clone(&one.rows), Arc::clone(&one.kinds));
        drop(shelf);
        Some(page(id, &rows, &kinds, from, size))
    }
}

/// What rows take in memory, nearly.
fn size_of_rows(rows: &Rows) -> usize {
    let text = |cell: &Cell| match cell {
        Cell::Text(text) | Cell::Binary(text) | Cell::Decimal(text) => text.len(),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) => 0,
    };
    let row = |row: &Vec<Cell>| row.iter().map(|cell| size_of::<Cell>() + text(cell)).sum::<usize>();
    rows.rows.iter().map(row).sum()
}

fn page(id: &str, rows: &Rows, kinds: &Arc<[Kind]>, from: usize, size: usize) -> Page {
    let to = from.saturating_add(size.max(1)).min(rows.rows.len());
    let last = to == rows.rows.len();
    let part: Vec<Vec<Cell>> = rows.rows[from..to].to_vec();
    let rows = Rows { columns: rows.columns.clone(), rows: part, truncated: rows.truncated && last };
    Page { rows, kinds: Some(Arc::clone(kinds)), cursor: (!last).then(|| format!("{id}.{to}")) }
}
