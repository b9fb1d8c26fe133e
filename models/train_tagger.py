#!/usr/bin/env python3
"""Trains attend's part-of-speech tagger: English, the 17 universal tags (UPOS).

    python3 train_tagger.py --data DATA --base BASE --out RUN

DATA holds en_ewt.train.tsv and en_ewt.dev.tsv: form, UPOS and Penn tag of one word a line,
tab-separated, an empty line after a sentence. They are the columns of Universal Dependencies
English EWT (CC BY-SA 4.0; the weights trained on it are handed on under that licence). BASE holds
config.json, tokenizer.json and model.safetensors of all-MiniLM-L6-v2 (Apache-2.0). Training is on
train; dev chose the epoch and the sizes below. export_golden.py makes the files for conversion from
RUN.

The model: the first 4 of MiniLM's 6 layers (384 wide, 12 heads), of their feed-forward networks the
1,024 strongest of 1,536 inner units, and the 14,850 most useful of its 30,522 pieces: 11.6 MB with
int8 matrices. Rows of the vocabulary pay better than inner units and layers: after one epoch, 4
layers with 10,700 pieces had 53 words of dev more wrong than 6 layers with all pieces, and 42 of
them were among the 1,257 (of 25,147) that the small vocabulary cuts otherwise.

- The vocabulary is uncased; token type ids tell the case, see tagger_model.word_shape().
- A second head learns the Penn tags meanwhile, and is thrown away.
- Sentences vary: without the last mark, joined with the next, in one case, words hidden or cut into
  shorter pieces, so that short and careless input works too.
- Dev is measured with a moving average of the weights, after int8.

The weights that ship got 96.58 % of dev's 25,147 words right after int8, words cut as the treebank
does. They were made in two runs: `--ffn 0 --rows 10700 --epochs 6 --batch 700 --lr 1e-4 --clip 1`,
stopped after its first epoch (96.05 %), and from there `--start FIRST --epochs 12 --minutes 29`,
which came to three and a half epochs (96.08, 96.47, 96.58 and 96.58 %; the third was kept). An
epoch takes about 140 CPU seconds on two cores of a Xeon with AVX-512. The clock in the schedule and
the threads make a repetition differ a little.
"""

import argparse
import os
import random
import sys
import time

import torch
import torch.nn.functional as F

from bert import (CLS, MASK, PAD, SEP, UNK, Pieces, add_training_arguments, batches,
                  build_tokenizer, choose_vocab, load_vocab, parameter_groups, save_checkpoint,
                  start_weights)
from tagger_model import (MAX_PIECES, UPOS, Example, Tagger, accuracy, collate, read_sentences, tag,
                          word_shape)
from weights import Mean, begin, dequantised, learning_rate, read_json, stored_bytes, take_step


def make_config(args, base, vocab_size):
    return {
        "model_type": "bert", "architectures": ["BertForTokenClassification"],
        "vocab_size": vocab_size, "hidden_size": base["hidden_size"],
        "num_hidden_layers": args.layers, "num_attention_heads": base["num_attention_heads"],
        "intermediate_size": args.ffn or base["intermediate_size"], "hidden_act": "gelu",
        "hidden_dropout_prob": args.dropout, "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": 1e-12, "max_position_embeddings": MAX_PIECES, "type_vocab_size": 4,
        "pad_token_id": PAD, "position_embedding_type": "absolute",
        "id2label": {str(i): tag for i, tag in enumerate(UPOS)},
        "label2id": {tag: i for i, tag in enumerate(UPOS)},
        "attend_type_ids": "word_shape",
        "description": "English part-of-speech tagger, 17 universal tags (UPOS). Trained on "
        "Universal Dependencies English EWT (CC BY-SA 4.0) from all-MiniLM-L6-v2 (Apache-2.0); the "
        "weights are CC BY-SA 4.0.",
    }


# ---------------------------------------------------------------------------------------------
# Training
# ---------------------------------------------------------------------------------------------


def vary(sentences, index, rng, args):
    """One training sentence as (form, upos, xpos) rows, varied for robustness."""
    rows = list(zip(*sentences[index]))
    if len(rows) > 1 and rows[-1][1] == "PUNCT" and rng.random() < args.drop_final:
        rows.pop()
    if rng.random() < args.join and index + 1 < len(sentences):
        rows += zip(*sentences[index + 1])
    draw = rng.random()
    if draw < args.lower:
        rows = [(form.lower(), *tags) for form, *tags in rows]
    elif draw < args.lower + args.upper:
        rows = [(form.upper(), *tags) for form, *tags in rows]
    return rows


def make_example(rows, pieces, rng, args, xpos_ids):
    """Pieces and labels of a training sentence, with words hidden and cut short at random."""
    ids, types, first = [CLS], [0], []
    for form, *_ in rows:
        if rng.random() < args.cut and len(form) > 3:
            cut = pieces.cut_short(form, rng.randint(2, max(2, len(form) - 1)))
        else:
            cut = pieces(form)
        if rng.random() < args.hide:
            cut = [UNK if rng.random() < 0.5 else MASK] * (len(cut) if rng.random() < .5 else 1)
        if len(ids) + len(cut) >= MAX_PIECES:
            break
        first.append(len(ids))
        ids += cut
        types += [word_shape(form)] * len(cut)
    rows = rows[:len(first)]
    return Example(ids + [SEP], types + [0], first, [UPOS.index(r[1]) for r in rows],
                   [xpos_ids[r[2]] for r in rows])


def step_loss(model, chosen, args):
    """The loss of the examples `chosen`: of the universal tags, and a share of the Penn tags'."""
    ids, types, first = collate(chosen)
    hidden = model(ids, types, first)
    logits = model.classifier(hidden)
    gold = torch.tensor([t for e in chosen for t in e.upos])
    loss = F.cross_entropy(logits, gold, label_smoothing=args.smooth)
    if args.xpos_weight:
        fine = torch.tensor([t for e in chosen for t in e.xpos])
        loss = loss + args.xpos_weight * F.cross_entropy(model.xpos(hidden), fine)
    return loss


def with_state(model, state):
    """A model of the same shape, without the training-only head, with the weights `state`."""
    copy = Tagger(model.config)
    copy.load_state_dict(state)
    return copy.eval()


def train(model, sentences, dev, pieces, args, xpos_ids, log):
    """Trains, and saves the best epoch on dev; gives its share of right words and number."""
    rng = random.Random(args.seed)
    optimizer = torch.optim.AdamW(parameter_groups(model, ("classifier", "xpos"), args),
                                  betas=(0.9, 0.98), fused=True)
    mean = Mean(model, args.ema)
    best, step, total, rate, start = (0.0, 0), 0, None, 1.0, time.time()
    for epoch in range(1, args.epochs + 1):
        examples = [make_example(vary(sentences, i, rng, args), pieces, rng, args, xpos_ids)
                    for i in range(len(sentences))]
        plan = batches([len(e.ids) for e in examples], args.batch, rng)
        total = total or len(plan) * args.epochs
        model.train()
        losses = []
        for batch in plan:
            rate = learning_rate(step, total, start, args)
            if rate == 0.0:
                break
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * rate
            loss = step_loss(model, [examples[i] for i in batch], args)
            take_step(loss, optimizer, model.parameters(), args.clip, mean)
            step += 1
            losses.append(loss.item())
        state = mean.state(without=("xpos",))
        right = accuracy(tag(with_state(model, dequantised(state)), dev, pieces), dev)
        log(f"epoch {epoch} steps {step} loss {sum(losses) / max(1, len(losses)):.4f} "
            f"dev int8 {100 * right:.2f} minutes {(time.time() - start) / 60:.1f}")
        if right > best[0]:
            best = (right, epoch)
            save_checkpoint(args.out, model.config, state, pieces.tokenizer,
                            {"int8": right, "epoch": epoch})
        if rate == 0.0:
            break
    return best


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="folder of en_ewt.train.tsv and en_ewt.dev.tsv")
    add_training_arguments(p, ffn=1024, rows=14850, epochs=10, batch=1100, lr=1.5e-4, smooth=0.03,
                           threads=2)
    p.add_argument("--xpos-weight", type=float, default=0.3)
    p.add_argument("--drop-final", type=float, default=0.1, help="sentences without last mark")
    p.add_argument("--join", type=float, default=0.05, help="sentences joined with the next")
    p.add_argument("--lower", type=float, default=0.04, help="sentences in lower case")
    p.add_argument("--upper", type=float, default=0.02, help="sentences in upper case")
    p.add_argument("--cut", type=float, default=0.04, help="words cut into shorter pieces")
    p.add_argument("--hide", type=float, default=0.06, help="words hidden")
    return p.parse_args()


def main():
    args = parse_args()
    log = begin(args)
    train_set = read_sentences(os.path.join(args.data, "en_ewt.train.tsv"))
    dev = read_sentences(os.path.join(args.data, "en_ewt.dev.tsv"))
    base_config = read_json(os.path.join(args.base, "config.json"))
    base_vocab = load_vocab(os.path.join(args.base, "tokenizer.json"))
    words = [form for s in train_set for form in s.forms]
    vocab = choose_vocab(base_vocab, words, args.rows or len(base_vocab))
    pieces = Pieces(build_tokenizer(vocab))

    xpos_ids = {t: i for i, t in enumerate(sorted({t for s in train_set for t in s.xpos}))}
    model = Tagger(make_config(args, base_config, len(vocab)),
                   len(xpos_ids) if args.xpos_weight else 0)
    start_weights(model, args.base, base_vocab, vocab, args.seed, args.start)
    kept = {n: p for n, p in model.state_dict().items() if not n.startswith("xpos")}
    shown = {k: v for k, v in vars(args).items() if k not in ("data", "base", "out", "start")}
    log(f"arguments {shown} started "
        f"from {'a checkpoint' if args.start else 'the base'}")
    log(f"vocabulary {len(vocab)} weights {stored_bytes(kept) / 1e6:.3f} MB as int8")
    best = train(model, train_set, dev, pieces, args, xpos_ids, log)
    log(f"best: dev {100 * best[0]:.2f} after int8, epoch {best[1]}")


if __name__ == "__main__":
    sys.exit(main())
