//! Built-in functions of each dialect: kind, return type and danger.
//!
//! The tables are TSV files (`functions/*.tsv`): name, kind, return type, danger.

use std::collections::HashMap;

use crate::schema::Type;

/// Kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// Returns one value per row.
    Scalar,
    /// Returns one value for many rows.
    Aggregate,
    /// Requires OVER.
    Window,
    /// Returns rows; used in FROM.
    Table,
}

/// Reason to reject a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Danger {
    File,
    Network,
    Sleep,
    Sequence,
    Lock,
    Configuration,
    Code,
    Process,
    Write,
    Information,
}

impl Danger {
    fn from_name(word: &str) -> Option<Danger> {
        Some(match word {
            "" => return None,
            "file" => Danger::File,
            "network" => Danger::Network,
            "sleep" => Danger::Sleep,
            "sequence" => Danger::Sequence,
            "lock" => Danger::Lock,
            "configuration" => Danger::Configuration,
            "code" => Danger::Code,
            "process" => Danger::Process,
            "information" => Danger::Information,
            // Large objects, random seeds and any other danger in a table: the function changes
            // something.
            _ => Danger::Write,
        })
    }

    /// Returns a predicate phrase for messages, to follow "it".
    pub fn description(self) -> &'static str {
        match self {
            Danger::File => "reads or writes files of the server",
            Danger::Network => "reaches other machines",
            Danger::Sleep => "keeps the server waiting",
            Danger::Sequence => "moves a sequence",
            Danger::Lock => "takes locks",
            Danger::Configuration => "changes settings",
            Danger::Code => "runs code or SQL given as text",
            Danger::Process => "controls processes of the server",
            Danger::Write => "changes data or state",
            Danger::Information => "shows what belongs to other sessions or to the server",
        }
    }
}

/// Built-in function of a dialect.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// `true` if it can be a scalar function. Kinds can be combined: `min` of SQLite is both scalar
    /// and aggregate.
    pub scalar: bool,
    /// `true` if it can be an aggregate function.
    pub aggregate: bool,
    /// `true` if it can be a window function, which requires OVER.
    pub window: bool,
    /// `true` if it can be used in FROM.
    pub table: bool,
    /// Return type.
    pub returns: Type,
    /// Reason to reject calls of the function; `None` if it is harmless.
    pub danger: Option<Danger>,
}

/// Built-in functions of a dialect, by lower-case name.
pub struct FunctionTable {
    functions: HashMap<&'static str, Function>,
    /// Name prefixes of extensions that are too large to list: `st_*`.
    prefix_families: Vec<(&'static str, Function)>,
}

impl FunctionTable {
    /// Parses one of the committed tables. Malformed lines are skipped; a test ensures that there
    /// are none.
    pub(super) fn parse(text: &'static str) -> Self {
        let mut functions: HashMap<&'static str, Function> = HashMap::with_capacity(1024);
        let mut families = Vec::new();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            let mut cells = line.split('\t');
            let (Some(name), Some(kind), Some(returns)) = (cells.next(), cells.next(), cells.next()) else { continue };
            let danger = Danger::from_name(cells.next().unwrap_or("").trim());
            let returns = parse_type(returns);
            if let Some(prefix) = name.strip_suffix('*') {
                families.push((
                    prefix,
                    Function { scalar: true, aggregate: false, window: false, table: true, returns, danger },
                ));
                continue;
            }
            let f = functions.entry(name).or_insert(Function {
                scalar: false,
                aggregate: false,
                window: false,
                table: false,
                returns,
                danger,
            });
            f.danger = f.danger.or(danger);
            if f.returns != returns {
                f.returns = Type::Any;
            }
            match kind {
                "aggregate" => f.aggregate = true,
                "window" => f.window = true,
                "table" => f.table = true,
                _ => f.scalar = true,
            }
        }
        Self { functions, prefix_families: families }
    }

    /// Returns the function with a name, which must be lower case.
    pub fn get(&self, lower: &str) -> Option<&Function> {
        self.functions
            .get(lower)
            .or_else(|| self.prefix_families.iter().find(|(p, _)| lower.starts_with(p)).map(|(_, f)| f))
    }

    /// Returns the names of all listed functions in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }
}

fn parse_type(word: &str) -> Type {
    match word {
        "integer" => Type::Integer,
        "number" => Type::Number,
        "text" => Type::Text,
        "date" => Type::Date,
        "time" => Type::Time,
        "timestamp" => Type::Timestamp,
        "interval" => Type::Interval,
        "boolean" => Type::Boolean,
        "json" => Type::Json,
        "binary" => Type::Binary,
        "array" => Type::Array,
        _ => Type::Any,
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::DIALECTS;

    #[test]
    fn lists_common_functions_in_every_dialect() {
        for dialect in DIALECTS {
            for name in ["count", "sum", "avg", "min", "max", "lower", "abs", "coalesce", "row_number"] {
                assert!(dialect.functions.get(name).is_some(), "{} does not know {name}", dialect.name);
            }
            assert!(dialect.functions.get("count").is_some_and(|f| f.aggregate), "{}", dialect.name);
            for name in dialect.functions.names() {
                assert_eq!(name, name.to_lowercase(), "{}", dialect.name);
            }
        }
    }
}
