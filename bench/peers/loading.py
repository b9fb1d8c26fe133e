"""Times what a program waits for before its first answer: attend's tagger beside ONNX Runtime.

    loading.py --library build/release/libattend.so --tagger models/pos-en.attend --folder build/peers

ONNX Runtime has a network of the tagger's shapes with random weights, which this writes into
FOLDER/tagger the first time: as PyTorch exports it (plain), fused and in int8. Every sample is a
process of its own; the engines take turns. The clock starts with the library loaded: at the file's
name, and is read when the model is ready, and when it has answered. attend reads text and gives
tags, ONNX Runtime reads six ids and gives logits. Cold: the system was asked to forget the file's
pages just before, and fincore says that it did. Both use one thread.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TEXT = b"I saw a saw"  # six tokens, [CLS] and [SEP] among them
TAGGER = {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 12,
          "intermediate_size": 1024, "vocab_size": 14850, "type_vocab_size": 4,
          "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "labels": 17}


def timed(load, answer):
    begin = time.perf_counter_ns()
    model = load()
    loaded = time.perf_counter_ns()
    answer(model)
    return {"load": (loaded - begin) / 1e6, "first": (time.perf_counter_ns() - begin) / 1e6}


def time_attend(library, path, max_tokens):
    attend = ctypes.CDLL(library)

    class SessionOptions(ctypes.Structure):  # as far as it goes: attend_c.h
        _fields_ = [("struct_size", ctypes.c_size_t), ("num_threads", ctypes.c_int64),
                    ("max_tokens", ctypes.c_int64)]

    class PipelineOptions(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("session", ctypes.POINTER(SessionOptions))]

    class Tags(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("num_texts", ctypes.c_int64),
                    ("num_words", ctypes.c_int64)]

    session = SessionOptions(ctypes.sizeof(SessionOptions), 1, max_tokens)
    options = PipelineOptions(ctypes.sizeof(PipelineOptions), ctypes.pointer(session))
    model, tagger, tags = ctypes.c_void_p(), ctypes.c_void_p(), Tags(ctypes.sizeof(Tags))
    name, text = ctypes.c_char_p(path.encode()), ctypes.c_char_p(TEXT)

    def load():
        status = attend.attend_model_load(name, ctypes.byref(model), None)
        assert status == 0, status
        status = attend.attend_tagger_create(model, ctypes.byref(options), ctypes.byref(tagger),
                                             None)
        assert status == 0, status
        return tagger

    def answer(made):
        status = attend.attend_tag(made, text, ctypes.c_size_t(len(TEXT)), ctypes.byref(tags), None)
        assert status == 0 and tags.num_words == 4, (status, tags.num_words)

    return timed(load, answer)


def time_onnxruntime(path):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    ids = numpy.array([[2, 5, 6, 7, 6, 3]], dtype=numpy.int64)
    inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids),
              "token_type_ids": numpy.zeros_like(ids)}
    return timed(
        lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]),
        lambda session: session.run(None, inputs))


def write_graphs(folder):
    """Of TAGGER; here, so that the processes that are timed need no torch."""
    import torch

    from export_onnx import Bert, export

    class Tagger(Bert):
        def __init__(self, config):
            super().__init__(config)
            self.classifier = torch.nn.Linear(config["hidden_size"], config["labels"])

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.classifier(super().forward(input_ids, attention_mask, token_type_ids))

    torch.manual_seed(1)
    export(Tagger(TAGGER).eval(), TAGGER, folder, output="logits")


def forget(path):
    """Asks for the file's pages to be dropped; how many bytes of it are still there."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return int(subprocess.run(["fincore", "-bnro", "RES", path], check=True, capture_output=True,
                              text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--tagger", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--child", nargs=2)  # max_tokens or "onnx", and a file
    arguments = parser.parse_args()
    if arguments.child:
        kind, path = arguments.child
        print(json.dumps(time_onnxruntime(path) if kind == "onnx" else
                         time_attend(arguments.library, path, int(kind))))
        return
    graphs = arguments.folder / "tagger"
    if not (graphs / "int8.onnx").exists():
        write_graphs(graphs)
    engines = {"attend, 8,192 tokens": ("8192", arguments.tagger),
               "attend, 512 tokens": ("512", arguments.tagger)}
    for name in ("plain", "fused", "int8"):
        engines[f"ONNX Runtime, {name}"] = ("onnx", str(graphs / f"{name}.onnx"))
    samples = {(name, state): [] for name in engines for state in ("cold", "warm")}
    kept = 0
    for _ in range(arguments.rounds):
        for name, (kind, path) in engines.items():
            for state in ("cold", "warm"):
                if state == "cold":
                    kept = max(kept, forget(path))
                child = subprocess.run(
                    [sys.executable, __file__, *sys.argv[1:], "--child", kind, path], check=True,
                    capture_output=True, text=True)
                samples[name, state].append(json.loads(child.stdout))
    print(f"medians of {arguments.rounds}, ms; of a cold file at most {kept} bytes were there\n")
    print("| engine | file, MB | cold: ready | first answer | warm: ready | first answer |")
    print("|---|---|---|---|---|---|")
    for name, (_, path) in engines.items():
        figures = [statistics.median(sample[what] for sample in samples[name, state])
                   for state in ("cold", "warm") for what in ("load", "first")]
        cells = [f"{pathlib.Path(path).stat().st_size / 1e6:.1f}"] + [f"{x:.1f}" for x in figures]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for key, values in samples.items():
        firsts = sorted(value["first"] for value in values)
        print(f"first answers of {key}: {firsts[0]:.1f} to {firsts[-1]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
