//! The model that is asked, also where none is named: the facts are gathered here, and decided on elsewhere.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;

use clap::Args;
use querymend::Config;
use querymend::direct::NO_MODEL;
use querymend_model::{Cache, Choice, Entry, Facts, Leave, Model, Providers, choose, servers};

use crate::failure::Failure;
use crate::out::Out;
use crate::pulling::{cache, described, fetch, megabytes};
use crate::setup::{self, Asking, runtime, variable};

/// The options for when no model is named.
#[derive(Debug, Clone, Args)]
pub struct Unnamed {
    /// If no model is named and none is found, pull the default one without asking [env: QUERYMEND_AUTO_PULL=1]
    #[arg(short, long)]
    pub yes: bool,
}

/// The model that is named, or else the one that is found. Nothing is sent to it yet.
/// A command without the options for that says nothing of them.
pub fn model(
    asking: &Asking,
    unnamed: Option<&Unnamed>,
    config: &Config,
    out: &Out,
) -> Result<Arc<dyn Model>, Failure> {
    let providers = setup::providers(config)?;
    let none = || nothing(&providers, unnamed.is_some());
    let kept = Cache::of_the_user();
    let is_here = |entry: &Entry| kept.as_ref().is_some_and(|cache| cache.has(entry));
    let mut facts = Facts::at_hand(&providers, is_here);
    facts.named = asking.named(config);
    if facts.named.as_deref() == Some(NO_MODEL) {
        return Err(Failure::new("the model is turned off (`none`)").hint(NAMING));
    }
    facts.leave = leave(unnamed);
    if facts.wants_servers() {
        facts.servers = runtime()?.block_on(servers(&providers));
    }
    let spec = match choose(&facts) {
        Choice::Named(spec) => spec,
        Choice::Found { spec, because } => {
            out.note(&format!("note: no model is named; {spec} is asked, because {because}"));
            spec
        }
        Choice::Pull(name) => pulled(&name, &providers, out)?,
        Choice::AskToPull(name) => {
            let entry = providers.catalogue.get(&name)?;
            if !agreed(&format!("no model is named or found; pull {}? [Y/n] ", described(entry))) {
                return Err(none());
            }
            pulled(&name, &providers, out)?
        }
        Choice::Nothing => return Err(none()),
    };
    Ok(querymend_model::open(&spec, &providers)?)
}

/// Pulls a model and says how it is named.
fn pulled(name: &str, providers: &Providers, out: &Out) -> Result<String, Failure> {
    if fetch(providers.catalogue.get(name)?, &cache()?, out)?.is_none() {
        return Err(Failure::stopped(format!("there is no model yet: the pull of {name} was stopped")));
    }
    out.note(&format!("note: no model is named; local:{name} is asked, because it was pulled just now"));
    Ok(format!("local:{name}"))
}

fn leave(unnamed: Option<&Unnamed>) -> Leave {
    if unnamed.is_some_and(|unnamed| unnamed.yes)
        || variable("QUERYMEND_AUTO_PULL").is_some_and(|value| value.trim() == "1")
    {
        Leave::Given
    } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Leave::Askable
    } else {
        Leave::None
    }
}

/// Asks a question on the terminal. No answer at all is no.
fn agreed(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    if write!(stderr, "{question}").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"),
    }
}

/// How a model is named.
const NAMING: &str = "name one with --model, in the variable QUERYMEND_MODEL or as `model` in querymend.yaml: \
                      ollama:qwen2.5-coder, openai:gpt-4.1-mini, or the address of a server, http://127.0.0.1:8080/v1#name";

/// That no model is named where one must be: none is looked for then.
pub fn unnamed() -> Failure {
    Failure::new("no model is configured")
        .hint(format!("{NAMING}; `querymend model list` shows those that run here, as local:NAME"))
}

/// That there is no model, and all the ways to have one.
fn nothing(providers: &Providers, yes: bool) -> Failure {
    let keyed = providers.in_order().into_iter().filter(|(_, provider)| provider.default.is_some());
    let keys: Vec<&str> = keyed.filter_map(|(_, provider)| provider.key.as_deref()).collect();
    let local = match providers.catalogue.default_entry() {
        Some(entry) => format!(
            "; or let `querymend model pull {}` fetch one that runs here without any of these ({}, {}; {} as well)",
            entry.name,
            megabytes(entry.size),
            entry.licence,
            if yes { "--yes and QUERYMEND_AUTO_PULL=1 do so" } else { "QUERYMEND_AUTO_PULL=1 does so" }
        ),
        None => String::new(),
    };
    Failure::new("no model is configured").hint(format!(
        "{NAMING}; or set a key ({}); or start Ollama, llama.cpp, LM Studio or vLLM on this machine{local}",
        keys.join(", ")
    ))
}
