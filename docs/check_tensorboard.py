#!/usr/bin/env python3
"""Lets the real TensorBoard read a training run, and compares what it says with the run's JSON lines.

    python3 -m venv venv && venv/bin/pip install tensorboard
    venv/bin/python docs/check_tensorboard.py runs/mine

First the files are loaded in this process, then a server is started and asked for the same over HTTP, which is what a
browser sees. Prints one line for each check and exits with 1 if anything differs. The outcome of the last check is in
docs/learning.md.
"""

import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2


def lines(path):
    """(tag, step) -> value, for all lines of a JSONL file."""
    values = {}
    for line in path.read_text().splitlines():
        line = json.loads(line)
        step = line.pop("step")
        values.update({(tag, step): value for tag, value in line.items()})
    return values


def single(number):
    """The number as 32 bits hold it."""
    return struct.unpack("f", struct.pack("f", number))[0]


def check(name, expected, found):
    if expected != found:
        keys = set(expected) ^ set(found) or {k for k in expected if expected[k] != found[k]}
        sys.exit(f"DIFFERS: {name}: {sorted(map(str, keys))[:5]} of {len(expected)}")
    print(f"same: {len(found)} {name}")


def load(folder, scalars, histograms, settings):
    """Reads the event files as TensorBoard's own loader does."""
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    found = {(tag, e.step): e.value for tag in tags["scalars"] for e in events.Scalars(tag)}
    check("scalars", scalars, found)

    found = {}
    for tag in tags["histograms"]:
        for event in events.Histograms(tag):
            h = event.histogram_value
            assert h.bucket_limit[-1] == h.max and len(h.bucket_limit) == len(h.bucket)
            found[tag, event.step] = {
                "min": h.min, "max": h.max, "num": h.num, "sum": h.sum,
                "sum_squares": h.sum_squares, "counts": list(h.bucket),
            }
    check("histograms", histograms, found)

    plugin = events.PluginTagToContent("hparams")
    data = plugin_data_pb2.HParamsPluginData.FromString(plugin["_hparams_/session_start_info"])
    kinds = {"number_value": float, "string_value": str, "bool_value": bool}
    found = {}
    for key, value in data.session_start_info.hparams.items():
        kind = value.WhichOneof("kind")
        found[key] = kinds[kind](getattr(value, kind))
    check("hyper-parameters", settings, found)
    text = events.Tensors("hyperparameters")[0].tensor_proto.string_val[0].decode()
    assert events.PluginTagToContent("text").keys() == {"hyperparameters"}
    assert len(text.splitlines()) == 2 + len(settings)
    print(f"same: a text of {len(text.splitlines())} lines")


def serve(folder, scalars, histograms, settings):
    """Asks a TensorBoard server."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", "0", "--host", "127.0.0.1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while not (address := re.search(r"http://\S+", said)):
            line = server.stderr.readline()
            if not line:
                sys.exit(f"the server stopped: {said}")
            said += line

        def get(path, body=None, **query):
            url = f"{address[0]}data/{path}?{urllib.parse.urlencode(query)}"
            body = body and json.dumps(body).encode()
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            return json.load(urllib.request.urlopen(request))

        for _ in range(100):
            if get("runs"):
                break
            time.sleep(0.2)
        time.sleep(1)  # The loader goes on for a moment after it has found the run.
        (run,) = get("runs")

        def points(plugin, wanted):
            """Tags, and the last point of each; a server shows a sample of the others."""
            tags = get(f"plugin/{plugin}/tags")[run]
            assert set(tags) == {tag for tag, _ in wanted}, set(tags) ^ {tag for tag, _ in wanted}
            return {tag: get(f"plugin/{plugin}/{plugin}", run=run, tag=tag)[-1] for tag in tags}

        last = {tag: max(step for t, step in scalars if t == tag) for tag, _ in scalars}
        found = {(tag, step): value for tag, (_, step, value) in points("scalars", scalars).items()}
        expected = {(tag, step): scalars[tag, step] for tag, step in last.items()}
        assert all(math.isclose(expected[key], found[key], rel_tol=1e-6) for key in expected)
        print(f"served: {len(found)} tags of scalars")
        found = points("histograms", histograms)
        for tag, (_, step, buckets) in found.items():
            assert sum(count for _, _, count in buckets) == histograms[tag, step]["num"], tag
        print(f"served: {len(found)} tags of histograms")
        experiment = get("plugin/hparams/experiment", {"experimentName": ""})
        names = {info["name"] for info in experiment["hparamInfos"]}
        assert names == {k for k in settings}, names ^ set(settings)
        session = get("plugin/hparams/session_groups", {
            "experimentName": "", "startIndex": 0, "sliceSize": 10, "colParams": [],
            "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        })["sessionGroups"][0]["sessions"][0]
        print(f"served: {len(names)} hyper-parameters, session {session['status']}")
        (text,) = [get("plugin/text/text", run=run, tag=tag) for tag in get("plugin/text/tags")[run]]
        assert "<table>" in text[-1]["text"]
        print("served: a text with a table")
    finally:
        server.terminate()
        server.wait()


def main():
    folder = pathlib.Path(sys.argv[1])
    metrics = {**lines(folder / "metrics.jsonl"), **lines(folder / "timing.jsonl")}
    scalars = {key: single(value) for key, value in metrics.items() if not key[0].startswith("hparams/")}
    settings = {
        tag.removeprefix("hparams/"): value
        if isinstance(value, (bool, str))
        else float(value)
        if isinstance(value, (int, float))
        else json.dumps(value, separators=(",", ":"))
        for (tag, _), value in metrics.items()
        if tag.startswith("hparams/")
    }
    print("TensorBoard", tensorboard.__version__)
    events = folder / "tensorboard"
    print(len(list(events.iterdir())), "event files")
    load(events, scalars, lines(folder / "histograms.jsonl"), settings)
    serve(events, scalars, lines(folder / "histograms.jsonl"), settings)


if __name__ == "__main__":
    main()
