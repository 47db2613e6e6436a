//! Rows, as long as they are within the limits.

use std::mem::size_of;

use querymend_sql::{Cell, Rows};

use crate::Limits;

/// The rows of an answer, counted and weighed as they come. Once one is too many, no more are taken, and the answer says so.
pub(crate) struct Taking {
    rows: Rows,
    bytes: usize,
    most_rows: usize,
    most_bytes: usize,
}

impl Taking {
    pub(crate) fn new(columns: Vec<String>, limits: &Limits) -> Self {
        let rows = Rows { columns, ..Rows::default() };
        Self { rows, bytes: 0, most_rows: limits.rows, most_bytes: limits.bytes }
    }

    /// Whether one more value is within the limits; `beside` is the memory that it takes beside its cell. It is weighed before it is
    /// copied: it may be larger than all that is allowed.
    pub(crate) fn has_room(&mut self, beside: usize) -> bool {
        self.bytes = self.bytes.saturating_add(size_of::<Cell>()).saturating_add(beside);
        self.rows.truncated |= self.bytes > self.most_bytes;
        !self.rows.truncated
    }

    /// Takes a row whose values were weighed one by one. False if there was no room for all of them or for one row more: then that
    /// is all.
    pub(crate) fn take(&mut self, row: Vec<Cell>) -> bool {
        self.rows.truncated |= self.rows.rows.len() >= self.most_rows;
        if !self.rows.truncated {
            self.rows.rows.push(row);
        }
        !self.rows.truncated
    }

    /// The same for a row of which nothing was weighed before.
    pub(crate) fn weigh_and_take(&mut self, row: Vec<Cell>) -> bool {
        row.iter().all(|cell| self.has_room(beside(cell))) && self.take(row)
    }

    /// Whether there was more than is allowed.
    pub(crate) fn is_cut(&self) -> bool {
        self.rows.truncated
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.rows.rows.len()
    }

    /// What a row takes, on the average of those that are there.
    pub(crate) fn weight(&self) -> usize {
        self.bytes / self.count().max(1)
    }

    pub(crate) fn done(self) -> Rows {
        self.rows
    }
}

/// The memory that a value takes beside its cell.
fn beside(cell: &Cell) -> usize {
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
    fn f03_an_answer_ends_at_a_whole_row() {
        let mut few = Taking::new(vec!["a".into()], &Limits { rows: 2, ..Limits::default() });
        assert_eq!([few.weigh_and_take(row("x")), few.weigh_and_take(row("x")), few.is_cut()], [true, true, false]);
        assert!(!few.weigh_and_take(row("x")));
        assert_eq!((few.count(), few.done().truncated), (2, true));

        let limits = Limits { bytes: 4 * size_of::<Cell>() + 5, ..Limits::default() };
        let mut light = Taking::new(vec![], &limits);
        assert!(light.weigh_and_take(row("12345")) && light.weigh_and_take(row("")));
        assert_eq!(light.weight(), 2 * size_of::<Cell>() + 2);
        assert!(!light.weigh_and_take(row("")) && !light.take(row("")));
        assert_eq!((light.count(), light.done().truncated), (2, true));

        let mut heavy = Taking::new(vec![], &limits);
        assert!(heavy.has_room(0) && !heavy.has_room(usize::MAX) && !heavy.take(row("")));
        assert_eq!((heavy.count(), heavy.done().truncated), (0, true));
    }
}
