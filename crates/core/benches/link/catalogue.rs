//! Spider's tables and questions, and the catalogue that they are planted in.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use querymend_sql::ValueMention;
use querymend_sql::schema::{Column, ForeignKey, Table};
use serde_json::Value;

/// A question with the tables that its gold query reads.
#[derive(Clone)]
pub struct Asked {
    pub database: String,
    pub question: String,
    pub sql: String,
    /// In lower case.
    pub tables: BTreeSet<String>,
    /// Of a database that weights were not chosen on.
    pub held_out: bool,
}

impl Asked {
    /// The place of the last of its tables, counted from one.
    pub fn rank<'t>(&self, ranked: impl Iterator<Item = &'t Table>) -> usize {
        let mut missing = self.tables.len();
        for (at, table) in ranked.enumerate() {
            if table.schema.as_deref() == Some(&self.database) && self.tables.contains(&table.name.to_lowercase()) {
                missing -= 1;
                if missing == 0 {
                    return at + 1;
                }
            }
        }
        usize::MAX
    }
}

impl Asked {
    /// The same where any schema counts that has tables of the same names: nothing in the question may tell them apart.
    pub fn rank_of_alike<'t>(&self, ranked: impl Iterator<Item = &'t Table>) -> usize {
        let mut there: HashMap<&str, BTreeSet<String>> = HashMap::new();
        for (at, table) in ranked.enumerate() {
            let name = table.name.to_lowercase();
            if self.tables.contains(&name) {
                let names = there.entry(table.schema.as_deref().unwrap_or_default()).or_default();
                names.insert(name);
                if names.len() == self.tables.len() {
                    return at + 1;
                }
            }
        }
        usize::MAX
    }
}

/// All tables of Spider, each in a schema that is called like its database.
pub fn spider(data: &Path) -> Vec<Table> {
    let text = std::fs::read_to_string(data.join("spider/tables.json")).expect("spider/tables.json");
    let databases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    databases.iter().flat_map(of_database).collect()
}

fn of_database(database: &Value) -> Vec<Table> {
    let list = |key: &str| database[key].as_array().expect("a list");
    let types = list("column_types");
    let mut tables: Vec<Table> = list("table_names_original")
        .iter()
        .map(|name| Table {
            name: name.as_str().unwrap().to_string(),
            schema: Some(database["db_id"].as_str().unwrap().to_string()),
            ..Table::default()
        })
        .collect();
    // The first column stands for `*`.
    let columns: Vec<Option<(usize, String)>> = list("column_names_original")
        .iter()
        .map(|c| Some((usize::try_from(c[0].as_i64()?).ok()?, c[1].as_str()?.to_string())))
        .collect();
    for (column, kind) in columns.iter().zip(types) {
        if let Some((table, name)) = column
            && tables[*table].column(name).is_none()
        {
            tables[*table].columns.push(Column::new(name, kind.as_str().unwrap()));
        }
    }
    for key in list("primary_keys") {
        for key in key.as_array().map_or(std::slice::from_ref(key), Vec::as_slice) {
            if let Some((table, name)) = &columns[key.as_u64().unwrap() as usize] {
                tables[*table].primary_key.push(name.clone());
            }
        }
    }
    for pair in list("foreign_keys") {
        let at = |i: usize| columns[pair[i].as_u64().unwrap() as usize].clone().unwrap();
        let ((from, own), (to, there)) = (at(0), at(1));
        let key =
            ForeignKey { columns: vec![own], table: tables[to].name.clone(), references: vec![there], inferred: false };
        tables[from].foreign_keys.push(key);
    }
    tables
}

pub fn dev(data: &Path, tables: &[Table]) -> Vec<Asked> {
    let text = std::fs::read_to_string(data.join("spider/questions_dev.json")).expect("questions_dev.json");
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    asked(all.iter().map(|q| (text(&q["db_id"]), text(&q["question"]), text(&q["gold"]))), tables)
}

pub fn train(data: &Path, tables: &[Table]) -> Vec<Asked> {
    let text = std::fs::read_to_string(data.join("spider/train_questions.csv")).expect("train_questions.csv");
    asked(records(&text).into_iter().skip(1).map(|r| (r[0].clone(), r[1].clone(), r[2].clone())), tables)
}

fn asked(all: impl Iterator<Item = (String, String, String)>, tables: &[Table]) -> Vec<Asked> {
    let mut names: HashMap<&str, BTreeSet<String>> = HashMap::new();
    for table in tables {
        names.entry(table.schema.as_deref().unwrap()).or_default().insert(table.name.to_lowercase());
    }
    let mut out: Vec<Asked> = Vec::new();
    for (database, question, sql) in all {
        let Some(names) = names.get(database.as_str()) else { continue };
        let tables = read_by(&sql, names);
        if !tables.is_empty() {
            let held_out = hash(&database).is_multiple_of(2);
            out.push(Asked { database, question, sql, tables, held_out });
        }
    }
    out
}

/// The tables that a query reads: the names behind FROM and JOIN.
pub fn read_by(sql: &str, names: &BTreeSet<String>) -> BTreeSet<String> {
    let plain = sql.replace(['`', '"', '[', ']'], "").replace(['(', ')', ',', ';'], " ").to_lowercase();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let behind = words.windows(2).filter(|w| matches!(w[0], "from" | "join")).map(|w| w[1].to_string());
    behind.filter(|name| names.contains(name)).collect()
}

/// Fields of a file with commas.
pub fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field).trim_end_matches('\r').to_string());
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    records
}

pub fn hash(text: &str) -> u64 {
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    sum ^ (sum >> 32)
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

/// The tables with so many others beside them that there are `most`, with `width` columns on average.
pub fn planted(real: Vec<Table>, most: usize, width: usize) -> Vec<Table> {
    const USUAL: &[&str] =
        &["history", "archive", "log", "details", "summary", "tmp", "map", "stats", "events", "types"];
    let mut dice = Dice(0x5eed_1e55);
    let names: Vec<&str> = real.iter().map(|t| t.name.as_str()).collect();
    let words: Vec<String> = names
        .iter()
        .flat_map(|n| n.split(|c: char| !c.is_alphabetic()))
        .filter(|w| w.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let mut missing = most * width - real.iter().map(|t| t.columns.len()).sum::<usize>();
    let mut made: Vec<Table> = Vec::new();
    let mut schema = String::new();
    let mut begin = 0;
    while real.len() + made.len() < most {
        let left = most - real.len() - made.len();
        if begin == made.len() || dice.below(6) == 0 {
            begin = made.len();
            schema = format!("{}_{}_{}", dice.of(&words), dice.of(&words), made.len());
        }
        let name = match dice.below(10) {
            0 => dice.of(&names).to_string(),
            1 | 2 => format!("{}_{}", dice.of(&names), dice.of(USUAL)),
            3 | 4 => format!("{}_{}_{}", dice.of(&words), dice.of(&words), dice.of(&words)),
            _ => format!("{}_{}", dice.of(&words), dice.of(&words)),
        };
        if made[begin..].iter().any(|t| t.name.eq_ignore_ascii_case(&name)) {
            continue;
        }
        // Half of them are as wide as real ones, so that width gives nothing away; the others make up for it.
        let narrow = dice.below(2) == 0 && left > 1;
        let like = dice.of(&real).columns.len().max(3);
        let count = if narrow { like } else { (missing / left * 2).saturating_sub(5).clamp(3, missing) };
        let count = if left == 1 { missing.clamp(3, 500) } else { count };
        let mut table = Table { name, schema: Some(schema.clone()), ..Table::default() };
        table.columns.push(Column::new("id", "number"));
        table.primary_key.push("id".into());
        if begin < made.len() {
            let other = &made[begin + dice.below(made.len() - begin)];
            let own = format!("{}_id", other.name);
            table.columns.push(Column::new(&own, "number"));
            let (columns, references) = (vec![own], vec!["id".to_string()]);
            table.foreign_keys.push(ForeignKey { columns, table: other.name.clone(), references, inferred: false });
        }
        while table.columns.len() < count {
            // Columns that stand together in a real table mostly stay together.
            let from = &dice.of(&real).columns;
            let begin = dice.below(from.len());
            for column in from[begin..].iter().take(4.min(count - table.columns.len())) {
                if !table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
                    table.columns.push(column.clone());
                }
            }
        }
        missing = missing.saturating_sub(table.columns.len());
        made.push(table);
    }
    real.into_iter().chain(made).collect()
}

/// Which columns of Spider's databases hold a value: the plainest index that does it, to know what one is worth.
pub struct Values(HashMap<String, Vec<(String, String)>>);

impl Values {
    pub fn read(data: &Path) -> Self {
        let mut all: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for table in spider(data) {
            let database = table.schema.as_deref().unwrap();
            let file = data.join(format!("spider/database/{database}/{database}.sqlite"));
            let Ok(connection) =
                rusqlite::Connection::open_with_flags(file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
            else {
                continue;
            };
            for column in &table.columns {
                let sql = format!(
                    "SELECT DISTINCT CAST(\"{0}\" AS TEXT) FROM \"{1}\" WHERE typeof(\"{0}\") = 'text' AND length(\"{0}\") BETWEEN 2 AND 40 LIMIT 5000",
                    column.name, table.name
                );
                let Ok(mut statement) = connection.prepare(&sql) else { continue };
                let Ok(rows) = statement.query_map([], |row| row.get::<_, String>(0)) else { continue };
                for value in rows.flatten() {
                    let key = plain(&value).join(" ");
                    let places = all.entry(key).or_default();
                    let place = (table.full_name(), column.name.clone());
                    if places.last() != Some(&place) {
                        places.push(place);
                    }
                }
            }
        }
        Self(all)
    }

    /// The longest values that the question has, word by word.
    pub fn hits(&self, question: &str) -> Vec<ValueMention> {
        let words = plain(question);
        let (mut hits, mut at) = (Vec::new(), 0);
        while at < words.len() {
            let longest = (1..=5.min(words.len() - at)).rev().find_map(|count| {
                let value = words[at..at + count].join(" ");
                // A word in small letters is a value only if it says so itself.
                let first = question.to_lowercase().find(&words[at]).and_then(|i| question[i..].chars().next());
                let named = count > 1 || (first.is_some_and(char::is_uppercase) && at > 0);
                self.0.get(&value).filter(|_| named).map(|places| (count, value, places))
            });
            let Some((count, value, places)) = longest else {
                at += 1;
                continue;
            };
            for (table, column) in places {
                let (value, table, column) = (value.clone(), table.clone(), column.clone());
                hits.push(ValueMention { value, table, column, start: at, end: at + count, ..ValueMention::default() });
            }
            at += count;
        }
        hits
    }
}

fn plain(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}
