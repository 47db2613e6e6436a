//! Between text and tokens: a model's own vocabulary, and its own way to write a conversation down.

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use minijinja::{Environment, context};
use tokenizers::Tokenizer;

use super::trouble::Trouble;
use super::weights::Source;
use crate::request::Message;

/// A conversation as most small models of today were taught to read it, for files that do not say how.
const CHATML: &str =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// Reads and writes a model's tokens.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    templates: Environment<'static>,
    /// The text of each token that steers the model. In what people write they must not be read as such.
    special: Vec<String>,
    ends: Vec<u32>,
    begin: String,
    end: String,
}

impl Tokens {
    pub(super) fn read(source: &Source) -> Result<Self, Trouble> {
        let wrong = |what: String| Trouble::NotGguf(format!("its vocabulary cannot be used: {what}"));
        let tokenizer = Tokenizer::from_gguf(source.content()).map_err(|error| wrong(error.to_string()))?;
        let mut special: Vec<String> =
            tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        special.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let by_id = |key: &str| match source.content().metadata.get(key) {
            Some(Value::U32(id)) => Some(*id),
            _ => None,
        };
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.id_to_token(id)).unwrap_or_default();
        let (begin, end) = (by_id("tokenizer.ggml.bos_token_id"), by_id("tokenizer.ggml.eos_token_id"));
        let mut ends: Vec<u32> = end.into_iter().chain(by_id("tokenizer.ggml.eot_token_id")).collect();
        ends.extend(
            ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>"].iter().filter_map(|text| tokenizer.token_to_id(text)),
        );
        ends.sort_unstable();
        ends.dedup();
        let mut templates = Environment::new();
        templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        templates.set_fuel(Some(2_000_000));
        let template = source.text("tokenizer.chat_template").unwrap_or(CHATML).to_owned();
        templates.add_template_owned("chat", template).map_err(|error| wrong(format!("its chat template: {error}")))?;
        let (begin, end) = (text(begin), text(end));
        Ok(Self { tokenizer, templates, special, ends, begin, end })
    }

    /// The tokens of a conversation that the model is to go on with.
    pub(super) fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>, Trouble> {
        let messages: Vec<_> =
            messages.iter().map(|m| context! { role => m.role.word(), content => self.tame(&m.text) }).collect();
        let values =
            context! { messages, add_generation_prompt => true, bos_token => self.begin, eos_token => self.end };
        let text = self.templates.get_template("chat").and_then(|template| template.render(values));
        let text = text.map_err(|error| Trouble::NotGguf(format!("its chat template fails: {error}")))?;
        let encoded = self.tokenizer.encode_fast(text, false).map_err(|error| Trouble::NotGguf(error.to_string()))?;
        Ok(encoded.get_ids().to_vec())
    }

    /// A text in which nothing reads as a token that steers the model.
    fn tame<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        if !self.special.iter().any(|special| text.contains(special.as_str())) {
            return text.into();
        }
        let mut text = text.to_owned();
        for special in &self.special {
            let mut letters = special.chars();
            if let Some(first) = letters.next() {
                text = text.replace(special.as_str(), &format!("{first} {}", letters.as_str()));
            }
        }
        text.into()
    }

    /// Whether this token ends a reply.
    pub(super) fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// What tokens say.
    pub(super) fn text(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens, true).unwrap_or_default()
    }
}
