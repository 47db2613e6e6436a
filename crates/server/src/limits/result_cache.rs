//! Cache of results that are fetched page by page, per user and bounded in time and size.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use querymend_sql::{Cell, Rows};

use crate::encode::column_types::{ColumnType, column_types};
use crate::sync::Mutex;

/// Time that a result stays available for further pages.
const RESULT_TTL: Duration = Duration::from_secs(300);
/// Maximum size of the results of all users, in bytes.
const MAX_CACHED_BYTES: usize = 256 << 20;
/// Maximum number of results of one user.
const MAX_RESULTS_PER_USER: usize = 8;

/// Results with pages that have not been fetched yet.
#[derive(Default)]
pub struct ResultCache {
    cached: Mutex<CachedResults>,
}

#[derive(Default)]
struct CachedResults {
    /// Configuration version of the last [`ResultCache::clear`].
    config_version: u64,
    results: HashMap<String, CachedResult>,
}

struct CachedResult {
    user: String,
    rows: Arc<Rows>,
    column_types: Arc<[ColumnType]>,
    bytes: usize,
    cached_at: Instant,
}

/// Page of a result.
#[derive(Debug, Clone)]
pub struct ResultPage {
    /// Rows of the page.
    pub rows: Rows,
    /// Column types of the whole result; `None` if the result fits on one page.
    pub column_types: Option<Arc<[ColumnType]>>,
    /// Cursor of the next page; `None` on the last page.
    pub cursor: Option<String>,
}

impl ResultCache {
    /// Returns the first page of a result that was requested under `config_version`.
    ///
    /// The result is cached if it has more pages and the configuration has not changed since.
    pub fn first_page(&self, user: &str, config_version: u64, rows: Rows, size: usize) -> ResultPage {
        if rows.rows.len() <= size {
            return ResultPage { rows, column_types: None, cursor: None };
        }
        let id = querymend::trace_id();
        let rows = Arc::new(rows);
        let kinds: Arc<[ColumnType]> = column_types(&rows).into();
        let page = slice_page(&id, &rows, &kinds, 0, size);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if config_version < cached.config_version {
            return page;
        }
        let results = &mut cached.results;
        results.retain(|_, one| one.cached_at.elapsed() < RESULT_TTL);
        let oldest = |results: &HashMap<String, CachedResult>, user: &str| {
            let own = results.iter().filter(|(_, one)| one.user == user);
            own.min_by_key(|(_, one)| one.cached_at).map(|(id, _)| id.clone())
        };
        while results.values().filter(|one| one.user == user).count() >= MAX_RESULTS_PER_USER {
            let Some(id) = oldest(results, user) else { break };
            results.remove(&id);
        }
        let bytes = estimate_bytes(&rows);
        while !results.is_empty() && results.values().map(|one| one.bytes).sum::<usize>() + bytes > MAX_CACHED_BYTES {
            // The user with the largest share is evicted first, so that no user can displace the
            // results of others.
            let mut bytes_by_user: HashMap<&str, usize> = HashMap::from([(user, bytes)]);
            results.values().for_each(|one| *bytes_by_user.entry(&one.user).or_default() += one.bytes);
            let has_results = |user: &str| results.values().any(|one| one.user == user);
            let largest =
                bytes_by_user.into_iter().filter(|(user, _)| has_results(user)).max_by_key(|(_, bytes)| *bytes);
            let Some(id) = largest.and_then(|(user, _)| oldest(results, user)) else { break };
            results.remove(&id);
        }
        results.insert(
            id,
            CachedResult { user: user.to_owned(), rows, column_types: kinds, bytes, cached_at: Instant::now() },
        );
        page
    }

    /// Removes all results requested before a configuration version.
    ///
    /// Results in flight under an older version are not cached.
    pub fn clear(&self, config_version: u64) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.config_version = cached.config_version.max(config_version);
        cached.results.clear();
    }

    /// Returns a further page; `None` if the cursor has expired or belongs to another user.
    pub fn next_page(&self, user: &str, cursor: &str, size: usize) -> Option<ResultPage> {
        let (id, from) = cursor.rsplit_once('.')?;
        let from: usize = from.parse().ok()?;
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let one = cached.results.get(id).filter(|one| one.user == user && one.cached_at.elapsed() < RESULT_TTL)?;
        if from >= one.rows.rows.len() {
            return None;
        }
        let (rows, kinds) = (Arc::clone(&one.rows), Arc::clone(&one.column_types));
        drop(cached);
        Some(slice_page(id, &rows, &kinds, from, size))
    }
}

/// Estimates the size of rows in memory, in bytes.
fn estimate_bytes(rows: &Rows) -> usize {
    let text = |cell: &Cell| match cell {
        Cell::Text(text) | Cell::Binary(text) | Cell::Decimal(text) => text.len(),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) => 0,
    };
    let row = |row: &Vec<Cell>| row.iter().map(|cell| size_of::<Cell>() + text(cell)).sum::<usize>();
    rows.rows.iter().map(row).sum()
}

fn slice_page(id: &str, rows: &Rows, kinds: &Arc<[ColumnType]>, from: usize, size: usize) -> ResultPage {
    let to = from.saturating_add(size.max(1)).min(rows.rows.len());
    let last = to == rows.rows.len();
    let part: Vec<Vec<Cell>> = rows.rows[from..to].to_vec();
    let rows = Rows { columns: rows.columns.clone(), rows: part, truncated: rows.truncated && last };
    ResultPage { rows, column_types: Some(Arc::clone(kinds)), cursor: (!last).then(|| format!("{id}.{to}")) }
}
