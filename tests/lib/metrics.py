# Reads a file of Prometheus's text format with its own client library, and prints each sample as
# NAME TYPE LABEL='VALUE'… VALUE. The labels are sorted. Fails if the file is not of that format.
import sys

from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8", newline="") as file:
    text = file.read()
seen = set()
for family in text_string_to_metric_families(text):
    if family.name in seen or not family.documentation:
        sys.exit(f"{family.name} comes twice, or has no help")
    seen.add(family.name)
    for sample in family.samples:
        labels = "".join(f" {key}={value!r}" for key, value in sorted(sample.labels.items()))
        print(f"{sample.name} {family.type}{labels} {sample.value!r}")
