"""Third-party gRPC client that calls every method of a server, given only the service description.

    scripts/grpc_client.sh run ADDRESS

Generates its stubs from crates/server/proto, as a user would, and also works without them, by server reflection. The server
has the demo shop and a model whose drafts are, in order: one to be repaired, the same again, one that runs, and three that
cannot be repaired. Exits with an error message on the first unexpected result; otherwise prints the results as JSON.
"""

import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PROTO = Path(__file__).resolve().parent.parent / "crates" / "server" / "proto"
QUESTION = "Which electronics are there, at what price?"
MENDABLE = "SELECT id, price FROM products WHERE category = 'Electronics'"
#: Timeout of a call in seconds.
SECONDS = 600


def stubs(folder):
    """Generates Python stubs from the service description."""
    files = sorted(str(file.relative_to(PROTO)) for file in PROTO.rglob("*.proto"))
    made = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *made, *files], check=True)
    sys.path.insert(0, folder)
    from querymend.v1 import answer_pb2, querymend_pb2, querymend_pb2_grpc, sql_pb2

    return answer_pb2, querymend_pb2, querymend_pb2_grpc, sql_pb2


def held(what, message):
    if not what:
        sys.exit(f"error: {message}")


def refused(call):
    """Returns the status of a call that must fail, with the problem in its details."""
    try:
        call()
    except grpc.RpcError as error:
        return error, rpc_status.from_call(error)
    sys.exit("error: what should be refused was not")


def main(address):
    with tempfile.TemporaryDirectory() as folder, grpc.insecure_channel(address) as channel:
        answers, m, services, sqls = stubs(folder)
        grpc.channel_ready_future(channel).result(timeout=SECONDS)
        client = services.QuerymendStub(channel)
        seen = {}

        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "querymend.v1.Querymend"):
            said = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=SECONDS)
            held(said.status == health_pb2.HealthCheckResponse.SERVING, f"health of `{service}`: {said}")

        # Unary, with a request id and the caller's trace context.
        about = [("x-request-id", "python-1"), ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")]
        answer, call = client.Ask.with_call(m.AskRequest(question=QUESTION), metadata=about, timeout=SECONDS)
        held(dict(call.initial_metadata())["x-request-id"] == "python-1", "the id of the request is lost")
        held(answer.status == answers.ANSWER_STATUS_ANSWERED, f"not answered: {answer}")
        held(answer.corrections[0].successful and answer.corrections[0].strategy == "unknown-column", "not repaired")
        held(answer.metadata.llm_calls == 1 and answer.HasField("cost"), "metadata or cost is missing")
        held(answer.rows.rows[0].cells[0].WhichOneof("value") == "integer", "cells have no kind")
        seen["sql"], seen["rows"] = answer.sql, len(answer.rows.rows)

        # Server streaming.
        events = list(client.AskStream(m.AskRequest(question=QUESTION), timeout=SECONDS))
        began = [answers.Stage.Name(e.stage) for e in events if e.WhichOneof("event") == "stage_began"]
        held(events[0].WhichOneof("event") == "started", "a stream begins with what was asked")
        held(events[-1].WhichOneof("event") == "answer", "a stream ends with the answer")
        seen["stages"] = [name.removeprefix("STAGE_").lower() for name in began]

        # A conversation.
        session = client.CreateSession(m.CreateSessionRequest(), timeout=SECONDS).session_id
        client.Ask(m.AskRequest(question=QUESTION, session_id=session), timeout=SECONDS)
        turns = client.GetSession(m.GetSessionRequest(session_id=session), timeout=SECONDS).turns
        held(len(turns) == 1 and turns[0].question == QUESTION, f"the conversation is lost: {turns}")
        client.DeleteSession(m.DeleteSessionRequest(session_id=session), timeout=SECONDS)

        # Without a model.
        asked = m.CorrectRequest(original_query=MENDABLE, error_message="no such column: id", session_id="s", retry_count=1)
        corrected = client.Correct(asked, timeout=SECONDS)
        held(corrected.success and "product_id" in corrected.corrected_sql, f"not corrected: {corrected}")
        checked = client.Check(m.CheckRequest(sql="SELECT nope FROM products"), timeout=SECONDS)
        held(checked.approved and not checked.clean and checked.findings[0].place.column == 8, f"not checked: {checked}")
        pages = list(client.Run(m.RunRequest(sql="SELECT * FROM order_items", page_rows=100), timeout=SECONDS))
        seen["pages"] = [len(page.rows) for page in pages]
        held(pages[0].head.columns[0] == "order_id" and pages[-1].last, "pages lack their head or end")
        tables = client.Schema(m.SchemaRequest(), timeout=SECONDS).tables
        seen["tables"] = sorted(table.name for table in tables)
        databases = client.ListDatabases(m.ListDatabasesRequest(), timeout=SECONDS).databases
        held([(d.name, d.dialect) for d in databases] == [("shop", "sqlite")], f"other databases: {databases}")
        breakers = client.GetBreakers(m.GetBreakersRequest(), timeout=SECONDS).breakers
        held(breakers and all(b.state == m.BREAKER_STATE_CLOSED for b in breakers), f"breakers: {breakers}")
        client.ResetBreakers(m.ResetBreakersRequest(), timeout=SECONDS)

        # Rejected requests.
        error, status = refused(lambda: client.Ask(m.AskRequest(question=QUESTION), timeout=SECONDS))
        problem = answers.Problem()
        held(status.details[0].Unpack(problem), "the details hold no problem")
        held(dict(error.trailing_metadata())["querymend-code"] == problem.code, "metadata and details differ")
        seen["unanswered"] = [error.code().name, problem.code]
        error, status = refused(lambda: list(client.Run(m.RunRequest(sql="DROP TABLE products"), timeout=SECONDS)))
        status.details[0].Unpack(problem)
        seen["refused"] = [error.code().name, problem.code, problem.findings[0].code]
        error, _ = refused(lambda: client.Ask(m.AskRequest(question="x" * (2 << 20)), timeout=SECONDS))
        seen["too_long"] = [error.code().name, dict(error.trailing_metadata())["querymend-code"]]
        error, _ = refused(lambda: client.GetSession(m.GetSessionRequest(session_id=session), timeout=SECONDS))
        seen["forgotten"] = error.code().name
        unknown = channel.unary_unary("/querymend.v1.Other/Ask")
        error, _ = refused(lambda: unknown(b"", timeout=SECONDS))
        seen["unknown"] = error.code().name

        # Server reflection, without stubs.
        reflected = ProtoReflectionDescriptorDatabase(channel)
        seen["services"] = sorted(reflected.get_services())
        pool = DescriptorPool(reflected)
        method = pool.FindServiceByName("querymend.v1.Querymend").FindMethodByName("Check")
        taken, given = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        call = channel.unary_unary(
            "/querymend.v1.Querymend/Check",
            request_serializer=taken.SerializeToString,
            response_deserializer=given.FromString,
        )
        held(call(taken(sql="SELECT name FROM products"), timeout=SECONDS).clean, "asked by reflection, it is not clean")

        # Concurrent calls.
        failures = []

        def check():
            try:
                client.Check(m.CheckRequest(sql="SELECT name FROM products"), timeout=SECONDS)
            except grpc.RpcError as error:
                failures.append(error)

        threads = [threading.Thread(target=check) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held(not failures, f"some failed: {failures[:1]}")
        print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1])
