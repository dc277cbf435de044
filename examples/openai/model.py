"""A very small language model: it counts in a text which word follows each pair of words."""

import hashlib
import math
import random
import re
from collections import defaultdict
from pathlib import Path

WORDS = re.compile(r"[A-Za-z']+|[.,?!]")
DIMENSIONS = 64


def words_of(text):
    return WORDS.findall(text)


class Model:
    name = "tiny-miller"

    def __init__(self, path=Path(__file__).parent / "text.txt"):
        words = words_of(path.read_text())
        self.followers = defaultdict(list)
        for context in zip(words, words[1:], words[2:]):
            self.followers[context[:2]].append(context[2])
            self.followers[context[1:2]].append(context[2])
        self.starts = [pair for pair in zip(words, words[1:]) if pair[0][0].isupper()]

    def generate(self, prompt, limit, temperature=1.0, seed=None):
        """Yields one word or punctuation mark at a time, with the spaces of a sentence."""
        chance = random.Random(seed)
        before = tuple(words_of(prompt)[-2:])
        if before not in self.followers and before[-1:] not in self.followers:
            before = ()
        made = 0
        while made < limit:
            known = self.followers.get(before) or self.followers.get(before[-1:])
            # no word follows, or the prompt's words are not in the text: begin a new sentence
            new = (self.pick(known, temperature, chance),) if known else chance.choice(self.starts)
            for word in new[: limit - made]:
                yield word if word in ".,?!" or (made == 0 and not before) else f" {word}"
                made += 1
            before = (before + new)[-2:]
            if new[-1] in ".?!" and made >= limit // 2:
                return

    @staticmethod
    def pick(words, temperature, chance):
        if temperature == 0:
            return max(sorted(set(words)), key=words.count)
        return chance.choice(words)

    @staticmethod
    def embed(text):
        """An embedding of a text: similar words share letters, and so a part of its direction."""
        vector = [0.0] * DIMENSIONS
        for word in words_of(text.lower()):
            for at in range(max(1, len(word) - 2)):
                digest = hashlib.sha256(word[at : at + 3].encode()).digest()
                vector[digest[0] % DIMENSIONS] += 1 if digest[1] % 2 else -1
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]
