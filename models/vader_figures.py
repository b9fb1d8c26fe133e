#!/usr/bin/env python3
"""What the lexicon tool vaderSentiment gets on the dev texts, by the same figures as our model.

    pip install vaderSentiment==3.3.2    # MIT; these texts were rated to make and to test it
    python3 vader_figures.py --data DATA

DATA holds dev.tsv: rating, source and text, tab-separated. A label is right as vaderSentiment's
authors advise to read its compound score: positive from 0.05, negative from -0.05 down, neutral
between. Of the texts with |rating| > 0.5 the side is that of the sign of the compound score; 0 is
on neither.
"""

import argparse
import os
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of dev.tsv")
    args = parser.parse_args()
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    analyzer = SentimentIntensityAnalyzer()
    right = texts = same = sides = 0
    with open(os.path.join(args.data, "dev.tsv"), encoding="utf-8") as lines:
        for line in lines:
            rating, _, text = line.rstrip("\n").split("\t", 2)
            rating, score = float(rating), analyzer.polarity_scores(text)["compound"]
            label = (rating > 0.5) - (rating < -0.5)
            right += label == (score >= 0.05) - (score <= -0.05)
            texts += 1
            sides += label != 0
            same += label != 0 and score * label > 0
    print(f"vaderSentiment: {100 * right / texts:.1f} % of {texts} labels right, "
          f"{100 * same / sides:.1f} % of {sides} on the right side")


if __name__ == "__main__":
    sys.exit(main())
