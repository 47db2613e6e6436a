"""Classifies statements with DataFusion: read, refused, or something else.

    scripts/datafusion_check.py < STATEMENTS

Each input line is a statement as a JSON string. Each output line is "read", "refused" (it does not parse, or refers to
unknown names), or an object with DataFusion's message for any other statement. Nothing is executed: statements are parsed
and planned with options that forbid changes to data, tables or settings.
"""

import json
import sys

from datafusion import SessionContext, SQLOptions

OTHERWISE = ("DDL not supported", "DML not supported", "Statement not supported", "Unsupported SQL statement", "only supports a single SQL statement")

context = SessionContext()
context.sql("CREATE TABLE canary (id INT, song VARCHAR) AS VALUES (1, 'tweet'), (2, 'chirp'), (3, NULL)").collect()
only_queries = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)

for line in sys.stdin:
    try:
        context.sql_with_options(json.loads(line), only_queries)
        seen = "read"
    except BaseException as error:  # Rust panics do not derive from Exception.
        said = str(error)
        if isinstance(error, KeyboardInterrupt):
            raise
        seen = {"said": said} if any(words in said for words in OTHERWISE) else "refused"
    print(json.dumps(seen))
