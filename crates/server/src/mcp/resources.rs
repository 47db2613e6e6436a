//! What can be read without calling a tool: the tables of each database, and what each finding means.

use querymend::Problem;
use querymend_sql::{RULES, Rule};

use crate::service::Service;
use crate::user::User;

/// Tables of a database.
pub const SCHEMA: &str = "querymend://schema/";
/// What a finding means.
pub const RULE: &str = "querymend://rules/";
/// All findings there are.
pub const RULES_LIST: &str = "querymend://rules";

/// The longest resource, in bytes.
const MOST: usize = 256 << 10;

/// A text with its kind.
pub struct Read {
    pub text: String,
    pub kind: &'static str,
}

/// What stands at an address; nothing, if there is nothing that this user may read.
pub async fn read(service: &Service, user: &User, address: &str) -> Result<Option<Read>, Problem> {
    if address == RULES_LIST {
        let line = |rule: &&Rule| format!("- `{}`: {}\n", rule.code, rule.summary());
        return Ok(Some(Read { text: RULES.iter().map(line).collect(), kind: "text/markdown" }));
    }
    if let Some(code) = address.strip_prefix(RULE) {
        let page = Rule::named(code).map(|rule| format!("{}\n", rule.page.trim_end()));
        return Ok(page.map(|text| Read { text, kind: "text/markdown" }));
    }
    let Some(name) = address.strip_prefix(SCHEMA) else { return Ok(None) };
    if !service.databases(user).iter().any(|database| database.name == name) {
        return Ok(None);
    }
    let tables = service.tables(user, Some(name), &[]).await?;
    let (mut text, written) = tables.ddl(MOST);
    let all = tables.iter().count();
    if written < all {
        text.push_str(&format!("-- cut: {written} of {all} tables; the tool `schema` shows those that are named\n"));
    }
    Ok(Some(Read { text, kind: "application/sql" }))
}
