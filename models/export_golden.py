#!/usr/bin/env python3
"""Makes the files of the tagger that train_tagger.py trained: for conversion and for tests.

    python3 export_golden.py --data DATA --checkpoint RUN --out OUT

DATA holds en_ewt.dev.tsv (UD English EWT, CC BY-SA 4.0), RUN is train_tagger.py's --out. OUT gets

- hf/: config.json, model.safetensors, tokenizer.json and tokenizer_config.json as Hugging Face
  names them. Every matrix is what its int8 form (per row: scale = max |w| / 127, q = w / scale to
  the nearest even) stands for, so that quantising it again gives the same q, and the same scale
  but for a last bit.
- logits.safetensors: for the first sentences k of dev k.input_ids, k.type_ids, k.first (the index
  of the first piece of every word) and k.logits, f32, [pieces, labels], computed in f64.
- tags.txt: the tag found for every word of dev, one a line, an empty line after a sentence.
- figures.json: words right before and after int8, errors by tag, sizes.

Needs about a minute on one core.
"""

import argparse
import collections
import json
import os
import sys

import torch
from safetensors.torch import save_file

import tagger_model as tm
from bert import write_folder
from weights import check_quantised, dequantised, stored_bytes, write_json


@torch.no_grad()
def golden_logits(model, sentences, pieces):
    model = model.double().eval()
    tensors = {}
    for k, sentence in enumerate(sentences):
        ids, types, first = tm.encode(sentence.forms, pieces)
        all_pieces = torch.arange(len(ids))
        logits = model.classifier(model(torch.tensor([ids]), torch.tensor([types]), all_pieces))
        tensors[f"{k}.input_ids"] = torch.tensor(ids)
        tensors[f"{k}.type_ids"] = torch.tensor(types)
        tensors[f"{k}.first"] = torch.tensor(first)
        tensors[f"{k}.logits"] = logits.float().contiguous()
    model.float()
    return tensors


def errors_by_tag(found, sentences):
    """For every gold tag: words, right, and what the wrong ones were taken for."""
    table = {t: {"words": 0, "right": 0, "found": 0, "taken_for": collections.Counter()}
             for t in tm.UPOS}
    for tags, sentence in zip(found, sentences):
        for tag, gold in zip(tags, sentence.upos):
            table[gold]["words"] += 1
            table[tag]["found"] += 1
            if tag == gold:
                table[gold]["right"] += 1
            else:
                table[gold]["taken_for"][tag] += 1
    return table


def tags_of(logits):
    return [[tm.UPOS[i] for i in part.argmax(-1).tolist()] for part in logits]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sentences", type=int, default=50, help="in logits.safetensors")
    args = parser.parse_args()
    torch.set_num_threads(1)

    dev = tm.read_sentences(os.path.join(args.data, "en_ewt.dev.tsv"))
    model, pieces = tm.load_checkpoint(args.checkpoint)
    f32 = tm.accuracy(tm.tag(model, dev, pieces), dev)
    state = dequantised(model.state_dict())
    ulps = check_quantised(model.state_dict())
    model.load_state_dict(state)
    logits = tm.tag(model, dev, pieces)
    found = tags_of(logits)

    folder = os.path.join(args.out, "hf")
    write_folder(folder, model.config, state, pieces.tokenizer)
    save_file(golden_logits(model, dev[:args.sentences], pieces),
              os.path.join(args.out, "logits.safetensors"))
    with open(os.path.join(args.out, "tags.txt"), "w", encoding="utf-8") as out:
        for tags in found:
            out.write("\n".join(tags) + "\n\n")

    table = errors_by_tag(found, dev)
    short = {text: " ".join(tags_of(tm.tag(model, [tm.Sentence(text.split(), [], [])], pieces))[0])
             for text in ("I saw a saw .", "I saw a saw", "i saw a saw", "I SAW A SAW !")}
    figures = {
        "words": sum(row["words"] for row in table.values()),
        "right": sum(row["right"] for row in table.values()),
        "accuracy_f32": f32, "accuracy_int8": tm.accuracy(logits, dev),
        "int8_bytes": stored_bytes(state),
        "tokenizer_bytes": os.path.getsize(os.path.join(folder, "tokenizer.json")),
        "scale_ulps": ulps, "short": short,
        "tags": {t: dict(row, taken_for=dict(row["taken_for"].most_common()))
                 for t, row in table.items()}}
    write_json(os.path.join(args.out, "figures.json"), figures, 1)
    print(json.dumps({k: v for k, v in figures.items() if k != "tags"}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
