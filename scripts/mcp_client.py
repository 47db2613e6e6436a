"""Tests `querymend mcp` with the official Python SDK, and fails on any unexpected result.

    scripts/mcp_client.py MODE QUERYMEND ARGUMENT...

MODE is `legacy` (with a handshake), `auto` (the newest protocol, the SDK's default), or `http`, followed by the URL of a
server. Prints the results as one line of JSON.
"""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters

TOOLS = ["ask", "check_sql", "fix_sql", "run_sql", "schema", "find_values", "explain_empty"]
BROKEN = "SELECT id, price FROM products"


def text(result):
    return result.content[0].text


async def speak(client):
    seen = {"version": client.protocol_version, "server": client.server_info.name}
    assert "fix_sql" in client.instructions, client.instructions

    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == TOOLS, listed
    for tool in listed:
        hints = tool.annotations
        assert hints.read_only_hint and not hints.destructive_hint and not hints.open_world_hint, tool
        assert tool.input_schema["type"] == "object", tool
    seen["tools_bytes"] = len(json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in listed], separators=(",", ":")))

    checked = await client.call_tool("check_sql", {"sql": BROKEN})
    assert not checked.is_error and "error[unknown-column] 1:8" in text(checked), checked
    assert checked.structured_content["clean"] is False, checked

    mended = await client.call_tool("fix_sql", {"original_query": BROKEN, "error_message": "no such column: id", "retry_count": 0})
    sql = mended.structured_content["corrected_sql"]
    assert mended.structured_content["success"] and sql == "SELECT product_id, price FROM products", mended
    seen["mended"] = sql

    ran = await client.call_tool("run_sql", {"sql": sql + " LIMIT 3"})
    assert not ran.is_error and ran.structured_content["row_count"] == 3, ran
    assert text(ran).startswith("product_id,price\n"), ran

    refused = await client.call_tool("run_sql", {"sql": "DELETE FROM products"})
    assert refused.is_error and refused.structured_content["code"] == "preflight_validation_failed", refused
    seen["refused"] = text(refused).splitlines()[0]

    wrong = await client.call_tool("run_sql", {"query": "SELECT 1"})
    assert wrong.is_error and wrong.structured_content["code"] == "bad_request", wrong

    resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert resources == ["querymend://schema/shop", "querymend://rules"], resources
    schema = await client.read_resource("querymend://schema/shop")
    assert "CREATE TABLE products" in schema.contents[0].text, schema
    rule = await client.read_resource("querymend://rules/unknown-column")
    assert rule.contents[0].text.startswith("# unknown-column"), rule
    assert len((await client.list_resource_templates()).resource_templates) == 2

    for wrongly in (client.read_resource("querymend://rules/nothing"), client.call_tool("drop_table", {})):
        try:
            await wrongly
        except MCPError:
            continue
        raise AssertionError("what is not there was given")

    stages = []

    async def hear(progress, total, message):
        stages.append(message)

    asked = await client.call_tool("ask", {"question": "Which products are there?"}, progress_callback=hear)
    seen["ask"] = {"failed": bool(asked.is_error), "text": text(asked), "stages": stages}
    return seen


async def main(mode, *command):
    if mode == "http":
        server, mode = command[0], "auto"
    else:
        server = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(server, mode=mode, read_timeout_seconds=600) as client:
        seen = await speak(client)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
