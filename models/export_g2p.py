#!/usr/bin/env python3
"""Makes the files of the model that train_g2p.py trained: for conversion and for tests.

    python3 export_g2p.py --data DATA --checkpoint RUN --out OUT

DATA holds dev.tsv (words of the CMU Pronouncing Dictionary), RUN is train_g2p.py's --out. OUT gets

- hf/: config.json, generation_config.json, model.safetensors and tokenizer.json as Hugging Face
  names them, every matrix as what its int8 form stands for (see export_golden.py).
- logits.safetensors: for some words k.input_ids, k.decoder_input_ids (what greedy search gives) and
  k.logits, f32, [ids, vocabulary], computed in f64.
- beam.tsv: for every `--every`-th word of dev what beam search gives: the word, a tab, sounds, a
  tab, the score.
- figures.json: per cent of wrong words and sounds on all of dev, with and without stress.

Needs some minutes on one core.
"""

import argparse
import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file

import g2p_model as gm
from weights import check_quantised, dequantised, read_json, stored_bytes, write_json, write_weights


def tokenizer_json(vocab):
    """The file of the `tokenizers` library: characters in, sounds out, one vocabulary."""
    special = [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for i, piece in enumerate(gm.SPECIAL)]
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False,
                       "strip_accents": True, "lowercase": True},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[\\s\\S]"},
                          "behavior": "Isolated", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing", "single": [first, end], "pair": [first, second, end],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [gm.EOS], "tokens": ["</s>"]}}},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {piece: i for i, piece in enumerate(vocab)},
                  "unk_token": "<unk>"}}


def write_folder(folder, config, tensors, vocab, penalty):
    os.makedirs(folder, exist_ok=True)
    write_weights(os.path.join(folder, "model.safetensors"), tensors)
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "generation_config.json"), {
        "decoder_start_token_id": gm.PAD, "eos_token_id": gm.EOS, "pad_token_id": gm.PAD,
        "num_beams": 4, "max_new_tokens": 48, "length_penalty": penalty, "early_stopping": False})
    write_json(os.path.join(folder, "tokenizer.json"), tokenizer_json(vocab))


@torch.no_grad()
def golden_logits(model, spellings, vocab):
    tensors = {}
    ids = {piece: i for i, piece in enumerate(vocab)}
    found = gm.greedy(model, spellings, vocab)
    model.double()
    for k, (spelling, sounds) in enumerate(zip(spellings, found)):
        letters = gm.letter_ids([spelling], ids)
        begun = torch.tensor([[gm.PAD] + [ids[s] for s in sounds]])
        tensors[f"{k}.input_ids"], tensors[f"{k}.decoder_input_ids"] = letters[0], begun[0]
        tensors[f"{k}.logits"] = model(letters, begun)[0].float().contiguous()
    model.float()
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--penalty", type=float, default=0.0, help="exponent of the length")
    parser.add_argument("--every", type=int, default=25, help="words of dev between two goldens")
    parser.add_argument("--logits", type=int, default=20, help="words in logits.safetensors")
    args = parser.parse_args()
    torch.set_num_threads(1)

    dev = gm.read_words(os.path.join(args.data, "dev.tsv"))
    config = read_json(os.path.join(args.checkpoint, "config.json"))
    vocab = read_json(os.path.join(args.checkpoint, "vocab.json"))
    tensors = load_file(os.path.join(args.checkpoint, "model.safetensors"))
    ulps, tensors = check_quantised(tensors), dequantised(tensors)
    write_folder(os.path.join(args.out, "hf"), config, tensors, vocab, args.penalty)
    model = gm.Speller(config)
    model.load_state_dict(gm.from_hugging_face(tensors, config))

    some = dev[::args.every]
    save_file(golden_logits(model, [w.spelling for w in some[:args.logits]], vocab),
              os.path.join(args.out, "logits.safetensors"))
    beams = gm.beam_search(model, [w.spelling for w in dev], vocab, penalty=args.penalty)
    with open(os.path.join(args.out, "beam.tsv"), "w", encoding="utf-8") as out:
        for word, (ids, score) in list(zip(dev, beams))[::args.every]:
            out.write(f"{word.spelling}\t{' '.join(gm.sounds_of(ids, vocab))}\t{score:.6f}\n")
    found = [gm.sounds_of(ids, vocab) for ids, _ in beams]
    figures = {
        "words": len(dev), "parameters": sum(t.numel() for t in tensors.values()),
        "int8_bytes": stored_bytes(tensors), "scale_ulps": ulps, "penalty": args.penalty,
        "beam": {"wrong_words_and_sounds": gm.errors(found, dev),
                 "without_stress": gm.errors(found, dev, gm.without_stress)}}
    write_json(os.path.join(args.out, "figures.json"), figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    sys.exit(main())
