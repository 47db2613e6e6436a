"""Validates /metrics with Prometheus' own parser and additional checks: every line belongs to a family with a declared type, no
line occurs twice, and histogram buckets are cumulative. Prints all samples as JSON.

    curl -s http://127.0.0.1:8642/metrics | scripts/telemetry.sh read
"""

import json
import math
import sys

from prometheus_client.parser import text_string_to_metric_families

SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def buckets_add_up(family, samples):
    series = {}
    for sample in samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        series.setdefault(json.dumps(labels, sort_keys=True), []).append(sample)
    for labels, own in series.items():
        buckets = [(float(s.labels["le"]), s.value) for s in own if s.name.endswith("_bucket")]
        counts = [s.value for s in own if s.name.endswith("_count")]
        assert buckets == sorted(buckets), f"{family.name}{labels}: the buckets are not in order"
        assert math.isinf(buckets[-1][0]), f"{family.name}{labels}: the last bucket has an end"
        assert [buckets[-1][1]] == counts, f"{family.name}{labels}: {buckets[-1][1]} is not {counts}"


def main():
    text = sys.stdin.read()
    assert text.endswith("\n"), "the last line has no end"
    families, seen, out = set(), set(), []
    for family in text_string_to_metric_families(text):
        assert family.name not in families, f"{family.name} comes twice"
        families.add(family.name)
        assert family.type in SUFFIXES, f"{family.name} is of no known kind: {family.type}"
        assert family.documentation, f"{family.name} says nothing about itself"
        for sample in family.samples:
            assert any(sample.name == family.name + suffix for suffix in SUFFIXES[family.type]), sample
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in seen, f"{key} comes twice"
            seen.add(key)
            assert not math.isnan(sample.value) and (family.type != "counter" or sample.value >= 0), sample
            out.append({"name": sample.name, "kind": family.type, "labels": sample.labels, "value": sample.value})
        if family.type == "histogram":
            buckets_add_up(family, family.samples)
    json.dump(out, sys.stdout)


main()
