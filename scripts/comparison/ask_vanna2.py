"""Asks Vanna 2.x, the tool-calling agent, as set up in its README: the `run_sql` tool on SQLite and an OpenAI-compatible model.

Reads lines of `{"id", "db", "question"}` and writes `{"id", "sql", "error"}`. The README does not show where to provide the
schema, and the memory of its quick start finds a table definition only if the question resembles it literally; a small model
would have to guess. So the table definitions are appended to the default system prompt. The memory tools are disabled: they
cost two more model calls per query.
"""
import asyncio, contextlib, json, os, sqlite3, sys

from vanna import Agent, AgentConfig
from vanna.core.registry import ToolRegistry
from vanna.core.system_prompt import DefaultSystemPromptBuilder
from vanna.core.user import RequestContext, User, UserResolver
from vanna.integrations.local.agent_memory import DemoAgentMemory
from vanna.integrations.openai import OpenAILlmService
from vanna.integrations.sqlite import SqliteRunner
from vanna.tools import RunSqlTool

ran = []


class Watched(SqliteRunner):
    """Records executed queries and their results."""

    async def run_sql(self, args, context):
        try:
            rows = await super().run_sql(args, context)
        except Exception as e:
            ran.append((args.sql, str(e)))
            raise
        ran.append((args.sql, None))
        return rows


class Schema(DefaultSystemPromptBuilder):
    def __init__(self, db):
        super().__init__()
        con = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
        self.ddl = [r[0] for r in con.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        con.close()

    async def build_system_prompt(self, user, tools):
        return await super().build_system_prompt(user, tools) + "\n\nThe SQLite database has these tables:\n\n" + "\n\n".join(self.ddl)


class OneUser(UserResolver):
    async def resolve_user(self, request_context):
        return User(id="user", email="user@example.com", group_memberships=["user"])


async def main():
    for line in sys.stdin:
        item = json.loads(line)
        tools = ToolRegistry()
        tools.register_local_tool(RunSqlTool(sql_runner=Watched(item["db"])), access_groups=[])
        agent = Agent(llm_service=OpenAILlmService(model="qwen", api_key="none", base_url=os.environ["MODEL_URL"] + "/v1"),
                      tool_registry=tools, user_resolver=OneUser(), agent_memory=DemoAgentMemory(),
                      system_prompt_builder=Schema(item["db"]), config=AgentConfig(temperature=0.0))
        ran.clear()
        with contextlib.redirect_stdout(sys.stderr):
            try:
                async for _ in agent.send_message(request_context=RequestContext(), message=item["question"]):
                    pass
                error = None
            except Exception as e:
                error = f"{type(e).__name__}: {e}"
        sql, failed = ran[-1] if ran else (None, error or "no query was run")
        print(json.dumps({"id": item["id"], "sql": sql, "error": failed, "queries": len(ran)}), flush=True)


asyncio.run(main())
