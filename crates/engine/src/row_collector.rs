//! Collects rows within the limits of a query.

use std::mem::size_of;

use querymend_sql::{Cell, Rows};

use crate::Limits;

/// Collects the rows of a result and measures their size. Once a limit is exceeded, it accepts no
/// more rows and marks the result as truncated.
pub(crate) struct RowCollector {
    rows: Rows,
    bytes: usize,
    max_rows: usize,
    max_bytes: usize,
}

impl RowCollector {
    pub(crate) fn new(columns: Vec<String>, limits: &Limits) -> Self {
        let rows = Rows { columns, ..Rows::default() };
        Self { rows, bytes: 0, max_rows: limits.rows, max_bytes: limits.bytes }
    }

    /// Accounts for one more value and returns whether it is within the limits. `heap_bytes` is the
    /// heap memory of its cell.
    ///
    /// A value is measured before it is copied, because it may be larger than the limit.
    pub(crate) fn reserve(&mut self, heap_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(size_of::<Cell>()).saturating_add(heap_bytes);
        self.rows.truncated |= self.bytes > self.max_bytes;
        !self.rows.truncated
    }

    /// Appends a row whose values were already reserved. Returns `false` if a limit was exceeded
    /// and no more rows are accepted.
    pub(crate) fn push_reserved(&mut self, row: Vec<Cell>) -> bool {
        self.rows.truncated |= self.rows.rows.len() >= self.max_rows;
        if !self.rows.truncated {
            self.rows.rows.push(row);
        }
        !self.rows.truncated
    }

    /// Reserves and appends a row.
    pub(crate) fn push(&mut self, row: Vec<Cell>) -> bool {
        row.iter().all(|cell| self.reserve(heap_bytes(cell))) && self.push_reserved(row)
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.rows.truncated
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.rows.len()
    }

    /// Returns the average size of the rows so far.
    pub(crate) fn average_row_bytes(&self) -> usize {
        self.bytes / self.row_count().max(1)
    }

    pub(crate) fn into_rows(self) -> Rows {
        self.rows
    }
}

/// Returns the heap memory of a cell.
fn heap_bytes(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) | Cell::Decimal(text) | Cell::Binary(text) => text.len(),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<Cell> {
        vec![Cell::Integer(1), Cell::Text(text.into())]
    }

    #[test]
    fn truncates_results_at_a_whole_row() {
        let mut few = RowCollector::new(vec!["a".into()], &Limits { rows: 2, ..Limits::default() });
        assert_eq!([few.push(row("x")), few.push(row("x")), few.is_truncated()], [true, true, false]);
        assert!(!few.push(row("x")));
        assert_eq!((few.row_count(), few.into_rows().truncated), (2, true));

        let limits = Limits { bytes: 4 * size_of::<Cell>() + 5, ..Limits::default() };
        let mut light = RowCollector::new(vec![], &limits);
        assert!(light.push(row("12345")) && light.push(row("")));
        assert_eq!(light.average_row_bytes(), 2 * size_of::<Cell>() + 2);
        assert!(!light.push(row("")) && !light.push_reserved(row("")));
        assert_eq!((light.row_count(), light.into_rows().truncated), (2, true));

        let mut heavy = RowCollector::new(vec![], &limits);
        assert!(heavy.reserve(0) && !heavy.reserve(usize::MAX) && !heavy.push_reserved(row("")));
        assert_eq!((heavy.row_count(), heavy.into_rows().truncated), (0, true));
    }
}
