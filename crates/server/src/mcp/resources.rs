//! Resources, readable without a tool call: database schemas and rule documentation.

use querymend::Problem;
use querymend_sql::{RULES, Rule};

use crate::auth::user::User;
use crate::service::Service;

/// URI prefix of database schemas.
pub const SCHEMA_URI: &str = "querymend://schema/";
/// URI prefix of rule documentation.
pub const RULE_URI: &str = "querymend://rules/";
/// URI of the list of all rules.
pub const RULES_URI: &str = "querymend://rules";

/// Maximum size of a resource, in bytes.
const MAX_RESOURCE_BYTES: usize = 256 << 10;

/// Text of a resource with its media type.
pub struct ResourceText {
    pub text: String,
    pub mime_type: &'static str,
}

/// Reads a resource; `None` if it does not exist or the user may not read it.
pub async fn read_resource(service: &Service, user: &User, address: &str) -> Result<Option<ResourceText>, Problem> {
    if address == RULES_URI {
        let line = |rule: &&Rule| format!("- `{}`: {}\n", rule.code, rule.summary());
        return Ok(Some(ResourceText { text: RULES.iter().map(line).collect(), mime_type: "text/markdown" }));
    }
    if let Some(code) = address.strip_prefix(RULE_URI) {
        let page = Rule::from_code(code).map(|rule| format!("{}\n", rule.page.trim_end()));
        return Ok(page.map(|text| ResourceText { text, mime_type: "text/markdown" }));
    }
    let Some(name) = address.strip_prefix(SCHEMA_URI) else { return Ok(None) };
    if !service.databases(user).iter().any(|database| database.name == name) {
        return Ok(None);
    }
    let tables = service.tables(user, Some(name), &[]).await?;
    let (mut text, written) = tables.ddl(MAX_RESOURCE_BYTES);
    let all = tables.iter().count();
    if written < all {
        text.push_str(&format!("-- truncated: {written} of {all} tables; the tool `schema` returns tables by name\n"));
    }
    Ok(Some(ResourceText { text, mime_type: "application/sql" }))
}
