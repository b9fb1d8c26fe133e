"""Writes search.jsonl: what Hugging Face transformers finds with a model that is a formula.

    python3 make_cases.py > search.jsonl        # transformers 5.24, torch

The next token's logits depend on the last two tokens and the length, by the hash below, which
tests/generate_testing.h has too. No two logits of a row are equal.
"""

import json
import random

import torch
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

MASK = (1 << 64) - 1


def mix(*words):
    state = 0
    for word in words:
        state = (state + word + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state


def logits(ids, salt, vocab):
    before = ids[-2] if len(ids) > 1 else 999
    row = [((mix(salt, before, ids[-1], len(ids), v) % 4001) * vocab + v) / (700.0 * vocab) for v in range(vocab)]
    return torch.tensor(row, dtype=torch.float64).float()


class Config(PreTrainedConfig):
    model_type = "formula"


class Formula(PreTrainedModel, GenerationMixin):
    config_class = Config
    main_input_name = "input_ids"

    def __init__(self, config, salt):
        super().__init__(config)
        self.salt = salt
        self.unused = torch.nn.Parameter(torch.zeros(1))
        self.post_init()

    def forward(self, input_ids, **_):
        rows = [logits(row, self.salt, self.config.vocab_size) for row in input_ids.tolist()]
        return CausalLMOutput(logits=torch.stack(rows)[:, None, :])

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}


def draw_settings(rng, vocab):
    def token():
        return rng.randrange(3, vocab)

    beams = rng.choice([1, 2, 3, 4, 4, 5])
    s = {"num_beams": beams, "max_new_tokens": rng.randint(1, 12), "eos_token_id": sorted(rng.sample(range(3), rng.choice([1, 1, 1, 2, 3])))}
    if beams > 1:
        s["num_return_sequences"] = rng.randint(1, beams)
        s["length_penalty"] = rng.choice([1.0, 1.0, 0.0, -1.0, 0.6, 2.0])
        s["early_stopping"] = rng.choice([False, True, "never"])
    options = [
        ("no_repeat_ngram_size", lambda: rng.randint(1, 3)),
        ("repetition_penalty", lambda: rng.choice([1.3, 0.8])),
        ("min_length", lambda: rng.randint(1, 8)),
        ("min_new_tokens", lambda: rng.randint(1, 6)),
        ("forced_bos_token_id", token),
        ("forced_eos_token_id", lambda: s["eos_token_id"][0]),
        ("suppress_tokens", lambda: [token(), token()]),
        ("begin_suppress_tokens", lambda: [token(), 0]),
        ("bad_words_ids", lambda: [[token()], [token(), token()], [token(), token(), token()], [s["eos_token_id"][0]]]),
        ("renormalize_logits", lambda: True),
    ]
    for name, make in options:
        if rng.random() < 0.2:
            s[name] = make()
    if rng.random() < 0.15:
        s["max_length"] = s.pop("max_new_tokens") + 4
    for name in ("suppress_tokens", "begin_suppress_tokens"):  # what is forced must not be forbidden
        forced = {s.get("forced_bos_token_id"), s.get("forced_eos_token_id")}
        if name in s:
            s[name] = [t for t in s[name] if t not in forced] or [vocab - 1]
    if vocab - 1 in (s.get("forced_bos_token_id"), s.get("forced_eos_token_id")):
        s.pop("suppress_tokens", None)
        s.pop("begin_suppress_tokens", None)
    return s


def main():
    rng = random.Random(7)
    torch.manual_seed(0)
    for number in range(400):
        vocab = rng.choice([6, 12, 24, 24, 40])
        model = Formula(Config(vocab_size=vocab), number)
        s = draw_settings(rng, vocab)
        prompt = [rng.randrange(vocab) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
        config = GenerationConfig(**s, pad_token_id=0, do_sample=False, use_cache=False, return_dict_in_generate=True, output_scores=True)
        out = model.generate(torch.tensor([prompt]), generation_config=config)
        outputs = []
        for row in out.sequences.tolist():
            new = row[len(prompt):]
            ends = [i for i, t in enumerate(new) if t in s["eos_token_id"]]
            outputs.append(new[: ends[0] + 1] if ends else new)
        case = {"salt": number, "vocab_size": vocab, "prompt": prompt, "settings": s, "outputs": outputs}
        if s["num_beams"] > 1:
            case["scores"] = [float(f"{x:.7g}") for x in out.sequences_scores.tolist()]
            if case["scores"][0] < -1e8:  # every token became forbidden: nothing is defined
                continue
        print(json.dumps(case, separators=(",", ":")))


if __name__ == "__main__":
    main()
