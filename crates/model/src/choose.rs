//! Which model is asked when none is named. Decided from facts alone; who gathers them is elsewhere.

use crate::catalogue::{Catalogue, Entry};
use crate::providers::{Provider, Providers};

/// What there is to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The model that someone named, in the words of [`crate::open`].
    pub named: Option<String>,
    /// The hosted providers with a default model whose key is set, those to be taken first first: the variable of the key,
    /// and the model in the words of [`crate::open`].
    pub keyed: Vec<(String, String)>,
    /// The servers that answered on this machine, those to be taken first first.
    pub servers: Vec<Served>,
    /// The models that lie on this machine, the better ones first.
    pub pulled: Vec<String>,
    /// The model that could be pulled.
    pub default: Option<String>,
    /// Whether it may be.
    pub leave: Leave,
}

/// A server that answered, and what it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The name of the provider.
    pub provider: String,
    /// Its address.
    pub base: String,
    /// Its models, in its own order.
    pub models: Vec<String>,
}

/// Whether a model may be pulled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leave {
    /// Someone has said yes beforehand.
    Given,
    /// There is someone who can be asked.
    Askable,
    /// There is nobody to ask.
    #[default]
    None,
}

/// Which model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The one that was named.
    Named(String),
    /// One that was found, and how.
    Found {
        /// The model, in the words of [`crate::open`].
        spec: String,
        /// How it was found, as in "because …".
        because: String,
    },
    /// This one of the catalogue, which has to be pulled before.
    Pull(String),
    /// This one of the catalogue, if someone says yes.
    AskToPull(String),
    /// None.
    Nothing,
}

/// Says which model is asked: the one that was named; else one whose key is set; else one that a server here serves; else one that
/// lies here; else the default one, if it may be pulled.
pub fn choose(facts: &Facts) -> Choice {
    if let Some(spec) = &facts.named {
        return Choice::Named(spec.clone());
    }
    if let Some((variable, spec)) = facts.keyed.first() {
        return Choice::Found { spec: spec.clone(), because: format!("{variable} is set") };
    }
    for server in &facts.servers {
        if let Some(model) = server.models.iter().find(|model| writes_text(model)) {
            let because = format!("{} serves it at {}", server.provider, server.base);
            return Choice::Found { spec: format!("{}:{model}", server.provider), because };
        }
    }
    if let Some(name) = facts.pulled.first() {
        return Choice::Found { spec: format!("local:{name}"), because: "it is on this machine".to_owned() };
    }
    match (&facts.default, facts.leave) {
        (Some(name), Leave::Given) => Choice::Pull(name.clone()),
        (Some(name), Leave::Askable) => Choice::AskToPull(name.clone()),
        (_, Leave::None) | (None, _) => Choice::Nothing,
    }
}

/// Words in the names of models that write no text: servers list them beside the others.
const NO_TEXT: [&str; 12] =
    ["embed", "minilm", "rerank", "bge-", "gte-", "e5-", "whisper", "tts", "clip", "diffusion", "guard", "moderation"];

fn writes_text(model: &str) -> bool {
    let model = model.to_lowercase();
    !model.is_empty() && !NO_TEXT.iter().any(|word| model.contains(word))
}

impl Facts {
    /// What can be known without asking anyone: keys, and files.
    pub fn at_hand(providers: &Providers, is_here: impl Fn(&Entry) -> bool) -> Self {
        let keyed = providers.in_order().into_iter().filter_map(|(name, provider)| {
            let (default, variable) = (provider.default.as_ref()?, provider.key.as_ref()?);
            key_is_set(provider, providers).then(|| (variable.clone(), format!("{name}:{default}")))
        });
        let catalogue: &Catalogue = &providers.catalogue;
        let pulled = catalogue.iter().filter(|entry| entry.unasked && is_here(entry));
        Facts {
            keyed: keyed.collect(),
            pulled: pulled.map(|entry| entry.name.clone()).collect(),
            default: catalogue.default_entry().map(|entry| entry.name.clone()),
            ..Facts::default()
        }
    }

    /// Whether it is of any use to look for servers: nothing that goes before them was found.
    pub fn wants_servers(&self) -> bool {
        self.named.is_none() && self.keyed.is_empty()
    }
}

/// Whether there is a key for a provider. Whether it is a good one shows when it is used.
pub fn key_is_set(provider: &Provider, providers: &Providers) -> bool {
    let is_set = |name: &str| providers.variables()(name).is_some_and(|value| !value.trim().is_empty());
    let variable = provider.key.as_deref();
    variable.is_some_and(|name| is_set(name) || is_set(&format!("{name}_FILE"))) || provider.key_file.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(spec: &str, because: &str) -> Choice {
        Choice::Found { spec: spec.to_owned(), because: because.to_owned() }
    }

    fn served(provider: &str, models: &[&str]) -> Served {
        let models = models.iter().map(ToString::to_string).collect();
        Served { provider: provider.to_owned(), base: "http://127.0.0.1:1/v1".to_owned(), models }
    }

    #[test]
    fn f07_the_first_way_that_is_open_is_taken() {
        let mut facts = Facts {
            named: Some("openai:gpt-5".to_owned()),
            keyed: vec![("A_KEY".to_owned(), "a:m".to_owned()), ("B_KEY".to_owned(), "b:m".to_owned())],
            servers: vec![served("ollama", &["nomic-embed-text", "qwen2.5-coder:7b"]), served("vllm", &["other"])],
            pulled: vec!["large".to_owned(), "small".to_owned()],
            default: Some("small".to_owned()),
            leave: Leave::Given,
        };
        assert_eq!(choose(&facts), Choice::Named("openai:gpt-5".to_owned()));
        facts.named = None;
        assert_eq!(choose(&facts), found("a:m", "A_KEY is set"));
        facts.keyed.clear();
        assert_eq!(choose(&facts), found("ollama:qwen2.5-coder:7b", "ollama serves it at http://127.0.0.1:1/v1"));
        facts.servers[0].models.pop();
        assert_eq!(choose(&facts), found("vllm:other", "vllm serves it at http://127.0.0.1:1/v1"));
        facts.servers[1].models.clear();
        assert_eq!(choose(&facts), found("local:large", "it is on this machine"));
        facts.pulled.clear();
        assert_eq!(choose(&facts), Choice::Pull("small".to_owned()));
        facts.leave = Leave::Askable;
        assert_eq!(choose(&facts), Choice::AskToPull("small".to_owned()));
        facts.leave = Leave::None;
        assert_eq!(choose(&facts), Choice::Nothing);
        facts = Facts { leave: Leave::Given, ..Facts::default() };
        assert_eq!(choose(&facts), Choice::Nothing);
    }

    #[test]
    fn a05_keys_are_found_in_the_order_of_the_providers() {
        let facts = |set: &'static [(&'static str, &'static str)], more: &str| {
            let providers = Providers::builtin().unwrap().and_text(more, "more.toml").unwrap();
            let providers = providers.with_variables(move |name| {
                set.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
            });
            Facts::at_hand(&providers, |entry| entry.name != "qwen2.5-coder-1.5b")
        };
        let specs = |facts: &Facts| facts.keyed.iter().map(|(_, spec)| spec.clone()).collect::<Vec<_>>();
        let all = &[
            ("OPENROUTER_API_KEY", "k"),
            ("GEMINI_API_KEY", "k"),
            ("ANTHROPIC_API_KEY_FILE", "/k"),
            ("OPENAI_API_KEY", "k"),
            ("OLLAMA_API_KEY", "k"),
        ];
        let every = facts(all, "");
        let expected = [
            "openai:gpt-4.1-mini",
            "anthropic:claude-sonnet-4-6",
            "gemini:gemini-2.5-flash",
            "openrouter:qwen/qwen3-coder",
        ];
        assert_eq!(specs(&every), expected);
        assert!(!every.wants_servers());
        assert_eq!(specs(&facts(all, "[gemini]\norder = 0"))[0], expected[2]);
        let ours = "[ours]\nwire = 'openai'\nbase = 'http://x'\nkey = 'OURS'\ndefault = 'm'\nkey_file = '/k'";
        assert_eq!(specs(&facts(&[("GEMINI_API_KEY", "k")], ours)), [expected[2], "ours:m"]);
        let none = facts(&[("OPENAI_API_KEY", " ")], "");
        assert!(none.keyed.is_empty() && none.wants_servers());
        // The smallest is here as well, but it must be named.
        assert_eq!(none.pulled, ["qwen2.5-coder-0.5b"]);
        assert_eq!(none.default.as_deref(), Some("qwen2.5-coder-0.5b"));
    }

    #[test]
    fn defaults_are_models_that_are_known() {
        for (name, provider) in Providers::builtin().unwrap().iter() {
            assert_ne!(provider.default.is_some(), provider.look, "{name} has a default or is looked for");
            assert!(provider.order.is_some(), "{name}");
            if let Some(default) = provider.default.as_ref().filter(|_| !provider.models.is_empty()) {
                assert!(provider.models.contains_key(default), "{name}:{default}");
            }
        }
    }
}
