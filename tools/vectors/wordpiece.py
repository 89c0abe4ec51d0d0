"""Text to token numbers, by the rules of the service's own reader (src/core/semantic/wordpiece.rs).

BERT's uncased rules (lower case, no accents, split at punctuation, ideographs alone, then the longest piece again and
again), and parts of an identifier (`getUserByID`) are words of their own unless together they are one word (`YouTube`).
"""

import re
import unicodedata

MAX_WORD_CHARS = 64
MAX_JOINED_PARTS = 3

_IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_RUN = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+|[^\w\s]|_")
_BOUNDARY = re.compile(r"(?<=\d)(?=\D)|(?<=\D)(?=\d)|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")


class WordPiece:
    def __init__(self, words):
        """`words` in the order of their numbers; pieces that continue a word begin with ##."""
        self.numbers = {word: number for number, word in enumerate(words)}
        self.cache = {}

    def read(self, text):
        """Numbers of the words, pieces and punctuation marks of a text; what is unknown is left out."""
        found = []
        text = unicodedata.normalize("NFKD", text)
        for run in _RUN.findall("".join(c for c in text if not unicodedata.combining(c))):
            pieces = self.cache.get(run)
            if pieces is None:
                pieces = self.cache[run] = self._identifier(run)
            found.extend(pieces)
        return found

    def _identifier(self, run):
        parts, found, at = _BOUNDARY.split(run), [], 0
        while at < len(parts):
            for last in range(min(len(parts), at + MAX_JOINED_PARTS), at + 1, -1):
                joined = "".join(parts[at:last]).lower()
                if joined in self.numbers:
                    found.append(self.numbers[joined])
                    at = last
                    break
            else:
                found.extend(self._pieces(parts[at].lower()))
                at += 1
        return found

    def _pieces(self, word):
        found, start = [], 0
        if len(word) > MAX_WORD_CHARS:
            return []
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self.numbers.get(word[start:end] if start == 0 else "##" + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return []
        return found
