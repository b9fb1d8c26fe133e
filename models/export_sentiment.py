#!/usr/bin/env python3
"""Makes the files of the classifier that train_sentiment.py trained: for conversion and for tests.

    python3 export_sentiment.py --data DATA --checkpoint RUN --out OUT

DATA holds dev.tsv (texts rated for VADER, MIT), RUN is train_sentiment.py's --out. OUT gets

- hf/: config.json, model.safetensors, tokenizer.json and tokenizer_config.json as Hugging Face
  names them, every matrix as what its int8 form stands for (see export_golden.py).
- logits.safetensors: for every `--every`-th text k.input_ids and k.logits, f32, [1, 3], computed in
  f64.
- labels.txt: the label found for every text of dev, one a line.
- figures.json: labels and sides right before and after int8, by source too, sizes.

Needs about a minute on one core.
"""

import argparse
import json
import os
import sys

import torch
from safetensors.torch import save_file

import sentiment_model as sm
from bert import write_folder
from weights import check_quantised, dequantised, stored_bytes, write_json

SHORT = ["You are very good", "It is a chair.", "I saw a saw", "This is not good.", "I hate it",
         "The train leaves at noon.", "not bad at all"]


@torch.no_grad()
def golden_logits(model, ids):
    model = model.double().eval()
    tensors = {}
    for k, row in enumerate(ids):
        tensors[f"{k}.input_ids"] = torch.tensor(row)
        tensors[f"{k}.logits"] = model(torch.tensor([row])).float().contiguous()
    model.float()
    return tensors


def by_source(logits, texts):
    out = {}
    for source in sorted({t.source for t in texts}):
        rows = [i for i, t in enumerate(texts) if t.source == source]
        out[source] = [len(rows), *sm.figures(logits[rows], [texts[i] for i in rows])]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--texts", type=int, default=50, help="in logits.safetensors")
    args = parser.parse_args()
    torch.set_num_threads(1)

    dev = sm.read_texts(os.path.join(args.data, "dev.tsv"))
    model, tokenizer = sm.load_checkpoint(args.checkpoint)
    ids = sm.encode(tokenizer, [t.text for t in dev])
    f32 = sm.figures(sm.predict(model, ids), dev)
    state = dequantised(model.state_dict())
    ulps = check_quantised(model.state_dict())
    model.load_state_dict(state)
    logits = sm.predict(model, ids)

    folder = os.path.join(args.out, "hf")
    write_folder(folder, model.config, state, tokenizer)
    save_file(golden_logits(model, ids[::len(ids) // args.texts][:args.texts]),
              os.path.join(args.out, "logits.safetensors"))
    with open(os.path.join(args.out, "labels.txt"), "w", encoding="utf-8") as out:
        out.writelines(sm.LABELS[i] + "\n" for i in logits.argmax(-1).tolist())
    shares = torch.softmax(sm.predict(model, sm.encode(tokenizer, SHORT)), -1).tolist()
    figures = {
        "texts": len(dev), "f32": f32, "int8": sm.figures(logits, dev),
        "by_source": by_source(logits, dev), "int8_bytes": stored_bytes(state),
        "scale_ulps": ulps, "longest": max(map(len, ids)),
        "short": {text: [round(s, 3) for s in share] for text, share in zip(SHORT, shares)}}
    write_json(os.path.join(args.out, "figures.json"), figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    sys.exit(main())
