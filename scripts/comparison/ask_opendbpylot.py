"""Asks opendbpylot through `dbpylot mcp`, its documented programmatic interface: loads the schema of the connected database
(`refresh_schema`), then calls `ask_database`, which includes its own repairs. Reads lines of `{"id", "db", "question"}` and
writes `{"id", "sql", "error"}`.

It supports OpenAI only at OpenAI's own address, and Ollama on port 11434 as the local model. So Ollama is configured, and
its HTTP proxy setting redirects the requests to proxy.py, which implements Ollama's protocol.
"""
import json, os, subprocess, sys, tempfile


class Server:
    def __init__(self, db):
        home = tempfile.mkdtemp(prefix="opendbpylot")
        with open(os.path.join(home, "settings.json"), "w") as f:
            json.dump({"provider": "ollama", "model": "qwen", "db_kind": "sqlite", "db_path": db}, f)
        env = {**os.environ, "OPENDBPYLOT_HOME": home, "HTTP_PROXY": os.environ["MODEL_URL"], "http_proxy": os.environ["MODEL_URL"]}
        for name in ("NO_PROXY", "no_proxy"):
            env.pop(name, None)
        command = os.path.join(os.path.dirname(sys.executable), "dbpylot")
        self.process = subprocess.Popen([command, "mcp"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=home)
        self.number = 0
        self.request("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "comparison", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        learned = self.tool("refresh_schema", {})
        if "tables_learned" not in learned:
            sys.exit(f"opendbpylot did not learn {db}: {learned}")

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, parameters):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})
        return json.loads(self.process.stdout.readline())

    def tool(self, name, arguments):
        reply = self.request("tools/call", {"name": name, "arguments": arguments})
        return json.loads(reply["result"]["content"][0]["text"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    servers = {}
    for line in sys.stdin:
        item = json.loads(line)
        # One process per database, limited to the number of databases in the questions.
        if item["db"] not in servers and len(servers) == 12:
            servers.pop(next(iter(servers))).close()
        server = servers[item["db"]] = servers.get(item["db"]) or Server(item["db"])
        said = server.tool("ask_database", {"question": item["question"]})
        ran = said.get("executed")
        print(json.dumps({"id": item["id"], "sql": said["sql"] if ran else None, "error": None if ran else said.get("error") or said.get("note"),
                          "reply": said.get("sql"), "repairs": said.get("repairs_used")}), flush=True)
    for server in servers.values():
        server.close()


main()
