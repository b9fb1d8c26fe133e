"""Times attend beside its peers, in turns, on the same token ids.

    peers.py --driver build/release/bench/peer_driver --model minilm.attend --onnx FOLDER
             --tokenizer tokenizer.json --sentences en_ewt.dev.text.tsv --threads 2 1
             --json out.json

Every case is run in rounds; in a round every engine has a turn of a few runs, of which the first
three are not counted, with a pause between the turns, so that no engine's threads still spin in
another's time and a machine that changes its speed changes it for all. The figure is the median of
all runs. Prints Markdown tables. Where lengths differ, peers get padding and a mask, attend gets the
ids.

A new peer is one class with `name`, `prepare(sequences)` and `run(prepared)` (seconds), and a line
in `make_engines`.
"""

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy


class Attend:
    def __init__(self, name, driver, model, threads, isa=None):
        self.name = name
        self.batches = 0
        command = [driver, model, str(threads)] + ([isa] if isa else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"{self.name}: {answer or 'ended'}")
        return answer

    def prepare(self, sequences):
        self.batches += 1
        numbers = [len(sequences), *map(len, sequences), *(i for s in sequences for i in s)]
        self.ask(f"batch b{self.batches} " + " ".join(map(str, numbers)))
        return f"b{self.batches}"

    def run(self, batch):
        return int(self.ask(f"run {batch}")) / 1e9

    def hidden(self, batch):
        return numpy.array(self.ask(f"hidden {batch}").split(), dtype=numpy.float32)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def padded(sequences):
    """[B, longest] ids, mask and types as int64."""
    shape = (len(sequences), max(map(len, sequences)))
    ids, mask = numpy.zeros(shape, numpy.int64), numpy.zeros(shape, numpy.int64)
    for row, sequence in enumerate(sequences):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return ids, mask, numpy.zeros(shape, numpy.int64)


class OnnxRuntime:
    def __init__(self, name, graph, threads):
        import onnxruntime
        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(graph, options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = {given.name for given in self.session.get_inputs()}

    def prepare(self, sequences):
        names = ("input_ids", "attention_mask", "token_type_ids")
        feed = {n: a for n, a in zip(names, padded(sequences)) if n in self.inputs}
        return feed, [len(sequence) for sequence in sequences]

    def run(self, batch):
        start = time.perf_counter()
        self.session.run(None, batch[0])
        return time.perf_counter() - start

    def hidden(self, batch):
        rows = self.session.run(None, batch[0])[0]
        return numpy.concatenate([row[:n].ravel() for row, n in zip(rows, batch[1])])

    def close(self):
        del self.session


def make_engines(options, threads):
    engines = [Attend("attend f32", options.driver, options.model, threads, options.isa)]
    engines.append(OnnxRuntime("onnxruntime f32", f"{options.onnx}/plain.onnx", threads))
    engines.append(OnnxRuntime("onnxruntime f32 fused", f"{options.onnx}/fused.onnx", threads))
    return engines


def read_sentences(options):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(options.tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=512)
    lines = pathlib.Path(options.sentences).read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [e.ids for e in tokenizer.encode_batch([line.split("\t")[0] for line in lines])]


def in_batches(sequences, size=32):
    return [sequences[i:i + size] for i in range(0, len(sequences), size)]


def make_cases(options):
    """(name, list of batches): a run of a case runs all of its batches."""
    random = numpy.random.default_rng(1)

    def ids(length):
        return [101, *random.integers(1996, 29000, length - 2).tolist(), 102]

    cases = [(f"1 x {length}", [[ids(length)]]) for length in (8, 16, 32, 128, 512)]
    cases.append(("8 x 128", [[ids(128) for _ in range(8)]]))
    if options.sentences:
        sentences = read_sentences(options)
        cases.append(("EWT dev, 32 as they come", in_batches(sentences)))
        cases.append(("EWT dev, 32 by length", in_batches(sorted(sentences, key=len))))
    return cases


def time_case(engines, batches, options):
    """Seconds of every run, by engine."""
    prepared = [[engine.prepare(batch) for batch in batches] for engine in engines]

    def once(k):
        return sum(engines[k].run(batch) for batch in prepared[k])

    # Warms up, and tells how long a run takes: the first ever touches memory for the first time.
    first = [min(once(k) for _ in range(3)) for k in range(len(engines))]
    seconds = [[] for _ in engines]
    # A case that takes long is one of many batches: its sum is steady, and its rounds are few.
    rounds = options.rounds if max(first) < 1 else options.long_rounds
    for _ in range(rounds):
        for k in range(len(engines)):
            # A pool that spins between calls does so for up to half a second: "pause" is slow here.
            time.sleep(0.5)
            for _ in range(3 if first[k] < 1 else 0):
                once(k)
            for _ in range(max(1, min(40, int(0.1 / first[k])))):
                seconds[k].append(once(k))
    return seconds


def check_equal(engines, batch):
    """All engines must compute the same thing, or their times mean nothing."""
    values = [engine.hidden(engine.prepare(batch)) for engine in engines]
    for engine, value in zip(engines[1:], values[1:]):
        difference = float(numpy.abs(value - values[0]).max())
        if not difference < 1e-3:
            sys.exit(f"{engine.name} differs from {engines[0].name} by {difference}")


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def print_head(names, threads):
    print(f"\n{threads} thread{'s' if threads > 1 else ''}; ms a run, or for EWT tokens/s\n")
    print("| case | " + " | ".join(names) + " | best peer / attend |")
    print("|---|" + "---:|" * (len(names) + 1), flush=True)


def print_row(row, names):
    medians = [row["median_s"][name] for name in names]
    if row["batches"] > 1:
        cells = [f"{row['tokens'] / median:,.0f}" for median in medians]
    else:
        cells = [f"{median * 1e3:.3f}" for median in medians]
    ratio = min(medians[1:]) / medians[0] if len(medians) > 1 else float("nan")
    print(f"| {row['case']} | " + " | ".join(cells) + f" | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--onnx", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--sentences", help="one sentence a line, before the first tab")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--long-rounds", type=int, default=3, help="rounds of cases over a second")
    parser.add_argument("--isa", help="limits attend's instruction set")
    parser.add_argument("--case", help="only the cases whose name contains this")
    parser.add_argument("--json", help="where the figures go")
    options = parser.parse_args()

    cases = [case for case in make_cases(options) if not options.case or options.case in case[0]]
    report = {"cpu": cpu_name(), "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "results": []}
    print(f"CPU: {report['cpu']}")
    for threads in options.threads:
        engines = make_engines(options, threads)
        check_equal(engines, [[101, 1045, 2387, 1037, 2387, 102], [101, 7592, 102]])
        names = [engine.name for engine in engines]
        print_head(names, threads)
        for name, batches in cases:
            seconds = time_case(engines, batches, options)
            row = {"case": name, "threads": threads, "batches": len(batches),
                   "tokens": sum(len(s) for batch in batches for s in batch),
                   "median_s": dict(zip(names, map(statistics.median, seconds))),
                   "fastest_s": dict(zip(names, map(min, seconds))),
                   "runs": dict(zip(names, map(len, seconds)))}
            print_row(row, names)
            report["results"].append(row)
        for engine in engines:
            engine.close()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
