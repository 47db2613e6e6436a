#!/usr/bin/env python3
"""Measures the time of a query on a large CSV file, compared with DuckDB and DataFusion.

    pip install duckdb datafusion
    scripts/files_speed.py [--bin target/release/querymend] [--rows 1000000]

Each measurement is a new process that reads the file and runs one query; the median of three.
"""

import argparse, os, random, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUERIES = {
    "count": "SELECT count(*) FROM sales",
    "sums by city": "SELECT city, sum(amount), avg(amount) FROM sales GROUP BY city ORDER BY 2 DESC",
    "ten of many": "SELECT customer, sum(amount) AS total FROM sales WHERE day >= '2024-06-01' GROUP BY customer ORDER BY total DESC LIMIT 10",
}
PEERS = {
    "duckdb": "import sys, duckdb; duckdb.sql(\"CREATE VIEW sales AS SELECT * FROM read_csv('\" + sys.argv[1] + \"')\"); print(len(duckdb.sql(sys.argv[2]).fetchall()))",
    "datafusion": "import sys, datafusion; c = datafusion.SessionContext(); c.register_csv('sales', sys.argv[1]); print(len(c.sql(sys.argv[2]).to_pylist()))",
}


def timed(command):
    times = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        times.append(time.perf_counter() - began)
        if done.returncode:
            return None
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "target/release/querymend"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "sales.csv")
        chance = random.Random(1)
        with open(file, "w") as out:
            out.write("id,day,customer,city,product,quantity,amount\n")
            for i in range(asked.rows):
                day = f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
                out.write(f"{i},{day},customer {chance.randint(1, 50000)},city {chance.randint(1, 300)},product {chance.randint(1, 900)},"
                          f"{chance.randint(1, 9)},{chance.randint(100, 99999) / 100}\n")
        print(f"{asked.rows} rows, {os.path.getsize(file) / 1e6:.0f} MB; seconds")
        print("| query | querymend | " + " | ".join(PEERS) + " |\n|---|---:|" + "---:|" * len(PEERS))
        for name, sql in QUERIES.items():
            times = [timed([asked.bin, "run", "--db", file, "--format", "csv", "--sql", sql])]
            times += [timed([sys.executable, "-c", peer, file, sql]) for peer in PEERS.values()]
            print(f"| {name} | " + " | ".join("-" if t is None else f"{t:.2f}" for t in times) + " |", flush=True)


main()
