//! A service, made from options and the configuration: what `serve` and `mcp` offer to others.

use std::path::Path;
use std::sync::Arc;

use querymend::Config;
use querymend_model::{Answer, Cancel, Error, Model, Reply, Request};
use querymend_server::service::{Database, Setup};
use querymend_server::user::Gate;

use crate::chosen::{self, Unnamed};
use crate::failure::Failure;
use crate::out::Out;
use crate::remember::{self, Remembering};
use crate::setup::{self, Asking};

/// A model that is not there. Everything but questions works without one.
struct Missing(Failure);

impl Model for Missing {
    fn name(&self) -> &str {
        "none"
    }

    fn complete<'a>(&'a self, _: &'a Request, _: &'a mut (dyn FnMut(&str) + Send), _: &'a Cancel) -> Answer<'a, Reply> {
        let error = Error::configuration(self.0.what.clone(), self.0.hint.clone().unwrap_or_default());
        Box::pin(async move { Err(error) })
    }
}

/// The model that is named or found. One that was asked for must be there; where none was, only questions need one.
pub fn model(asking: &Asking, unnamed: &Unnamed, config: &Config, out: &Out) -> Result<Arc<dyn Model>, Failure> {
    match chosen::model(asking, unnamed, config, out) {
        Ok(model) => Ok(model),
        Err(failure) if asking.named(config).is_none() => {
            out.note("note: no model is named or found, so questions cannot be answered; all else can");
            Ok(Arc::new(Missing(failure)))
        }
        Err(failure) => Err(failure),
    }
}

/// The databases that are named, each with the name that clients use: `NAME=ADDRESS`, or an address alone.
pub fn databases(named: &[String], config: &Config) -> Result<Vec<Database>, Failure> {
    let mut pairs: Vec<(String, String)> = named.iter().map(|text| pair(text)).collect();
    if pairs.is_empty() {
        pairs = config.server.databases.iter().map(|(name, address)| (name.clone(), address.clone())).collect();
    }
    if pairs.is_empty() {
        let one = setup::variable("QUERYMEND_DB").or_else(|| config.database.clone());
        pairs.extend(one.map(|address| (name_of(&address), address)));
    }
    if pairs.is_empty() {
        return Err(Failure::new("no database is named")
            .hint("name one with --db, or several as `server.databases` in querymend.yaml"));
    }
    let mut databases: Vec<Database> = Vec::new();
    for (name, address) in pairs {
        if databases.iter().any(|known| known.name == name) {
            return Err(Failure::new(format!("two databases are called `{name}`")).hint("name them: --db NAME=ADDRESS"));
        }
        let engine: Arc<dyn querymend_engine::Engine> = Arc::from(querymend_engine::open(&address)?);
        let identity = remember::identity(&*engine, &address);
        databases.push(Database { name, engine, identity });
    }
    Ok(databases)
}

fn pair(text: &str) -> (String, String) {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, address)) => (name.to_owned(), address.to_owned()),
        None => (name_of(text), text.to_owned()),
    }
}

/// What a database is called where nobody said: the end of its address, without what does not belong into a name.
fn name_of(address: &str) -> String {
    let plain = address.split(['?', '#']).next().unwrap_or(address).trim_end_matches('/');
    let last = plain.rsplit(['/', ':', '@']).next().unwrap_or(plain);
    let stem = Path::new(last).file_stem().map_or(last.into(), |stem| stem.to_string_lossy());
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if name.trim_matches('_').is_empty() { "database".to_owned() } else { name }
}

/// Everything that can be changed while a service runs.
pub async fn setup(
    named: &[String],
    model: Arc<dyn Model>,
    remembering: &Remembering,
    config: Config,
    gate: Arc<dyn Gate>,
    out: &Out,
) -> Result<Setup, Failure> {
    let databases = databases(named, &config)?;
    let store = match remembering.store(true, &config).await {
        Ok(store) => store,
        Err(failure) if remembering.store.is_some() || config.memory.store.is_some() => return Err(failure),
        Err(failure) => {
            out.note(&format!("note: nothing is remembered: {}", failure.what));
            None
        }
    };
    Ok(Setup { config, model, databases, store, gate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_have_names() {
        for (given, name, address) in [
            ("shop=postgres://u@h/x?sslmode=require", "shop", "postgres://u@h/x?sslmode=require"),
            ("postgres://u@h/sales?sslmode=require", "sales", "postgres://u@h/sales?sslmode=require"),
            ("data/querymend-demo.db", "querymend-demo", "data/querymend-demo.db"),
            ("./sales/", "sales", "./sales/"),
            ("sqlite:///var/a b.db", "a_b", "sqlite:///var/a b.db"),
            ("trino://u@h:8080", "8080", "trino://u@h:8080"),
            ("///", "database", "///"),
        ] {
            assert_eq!(pair(given), (name.to_owned(), address.to_owned()), "{given}");
        }
    }
}
