"""What DataFusion makes of statements: one read, something else, or nothing at all.

    scripts/datafusion_check.py < STATEMENTS

Each line of the input is a statement as a JSON string, and each line of the output says what it is: "read", "refused" (it does
not parse, or names what is not there), or an object with the words by which DataFusion says that it is something else. Nothing
is run: a statement is read and planned with options that forbid all that changes data, tables or settings.
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
    except BaseException as error:  # A panic of Rust is no Exception.
        said = str(error)
        if isinstance(error, KeyboardInterrupt):
            raise
        seen = {"said": said} if any(words in said for words in OTHERWISE) else "refused"
    print(json.dumps(seen))
