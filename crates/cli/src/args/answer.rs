//! Options of the commands that answer questions.

use clap::Args;

use crate::args::memory::MemoryArgs;
use crate::args::model::{AutoPullArgs, ModelArgs};

/// Options that select the model, its download and the memory of answers.
#[derive(Debug, Clone, Args)]
pub struct AnswerArgs {
    #[command(flatten)]
    pub model_args: ModelArgs,
    #[command(flatten)]
    pub auto_pull: AutoPullArgs,
    #[command(flatten)]
    pub memory_args: MemoryArgs,
}
