"""A policy in a process of its own: python3 my_policy.py, a line of JSON in, a line of JSON out.

pleach evaluate --policy sjf,'pipe:python3 my_policy.py'
"""
import json
import sys

hello = json.loads(sys.stdin.readline())
column = {it["name"]: place for place, it in enumerate(hello["candidate"])}
print(json.dumps({"pleach": 1}), flush=True)

for line in sys.stdin:
    decision = json.loads(line)
    best, index = None, 0
    for place, row in enumerate(decision["candidates"]):
        if row[column["is_start"]] != 1:
            continue  # hold, a reservation, a stop
        # The job that ends first on the GPUs that it would get.
        if best is None or row[column["duration_s"]] < best:
            best, index = row[column["duration_s"]], place
    if best is None and not decision["may_hold"]:
        index = 1
    print(json.dumps({"decision": decision["decision"], "index": index}), flush=True)
