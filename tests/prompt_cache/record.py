#!/usr/bin/env python3
"""Draws the sessions that docs/cache.md replays, from the committed set of tools and queries (../quality).

    python3 tests/prompt_cache/record.py > tests/prompt_cache/sessions.jsonl

Six sessions of 30 turns, each in four of the 27 servers. A turn holds what the user asks, the tools that are called with
the tokens of their results, and the tokens of the reply. In each session the catalog is edited twice: tools that the
session does not use, then also one that it does; and the conversation is compacted once. Same seed, same lines.
"""

import json
import random
from pathlib import Path

QUALITY = Path(__file__).resolve().parent.parent / "quality"
SEED, SESSIONS, TURNS = 20260, 6, 30
EDITS, COMPACTION = (9, 19), 22
CORE = {"read_file", "search_files", "web_search"}
# Tokens of a result: a confirmation, a record, a page of records, a document.
RESULTS = (60, 60, 250, 250, 600, 600, 1200, 2500)
ARGUMENTS = {"string": "as the user said", "integer": 3, "number": 2.5, "boolean": True, "array": [], "object": {}}


def lines(name):
    return [json.loads(line) for line in (QUALITY / name).read_text(encoding="utf-8").splitlines()]


def pick(rng, items):
    return items[int(rng.random() * len(items))]


def arguments(tool):
    schema = tool.get("parameters", {})
    kinds = {name: schema["properties"][name] for name in schema.get("required", [])}
    return {name: kind.get("enum", [ARGUMENTS[kind.get("type", "string")]])[0] for name, kind in kinds.items()}


def edited(tool, note):
    return {**tool, "description": f"{tool['description']} {note}"}


def session(number, rng, tools, asked):
    servers = sorted({tool["group"] for tool in tools})
    mine = set()
    while len(mine) < 4:
        mine.add(pick(rng, servers))
    mine, theirs = sorted(mine), [server for server in servers if server not in mine]
    pool = [tool for tool in tools if tool["group"] in mine]
    used, turns = [], []
    for turn in range(1, TURNS + 1):
        if turn == EDITS[0]:
            server = pick(rng, theirs)
            other = [tool for tool in tools if tool["group"] == server]
            new = {**pick(rng, other), "name": f"new_tool_{number}", "description": "Does what no tool here did before."}
            changed = [edited(tool, "Takes a little longer since the last update.") for tool in other[:3]]
            turns.append({"session": number, "edit": {"upsert": [*changed, new], "remove": [other[-1]["name"]]}})
        if turn == EDITS[1]:
            turns.append({"session": number, "edit": {"upsert": [edited(used[-1], "New: works in batches.")], "remove": []}})
        if turn == COMPACTION:
            turns.append({"session": number, "compaction": 700})
        calls = []
        for _ in range(1 + (rng.random() < 0.5)):
            again = len(used) > 2 and rng.random() < 0.55
            tool = pick(rng, used) if again else pick(rng, pool)
            if tool not in used:
                used.append(tool)
            # The model describes what it wants, or it reads the name in the listing.
            finds = "search" if rng.random() < 0.5 else "listing"
            query = pick(rng, asked.get(tool["name"], [tool["description"].split(". ")[0]]))
            calls.append({"tool": tool["name"], "finds": finds, "query": query, "arguments": arguments(tool),
                          "result": pick(rng, RESULTS)})
        user = " Then: ".join(call["query"] for call in calls)
        turns.append({"session": number, "turn": turn, "user": user, "calls": calls, "reply": 40 + int(rng.random() * 160)})
    return turns


def main():
    rng = random.Random(SEED)
    tools = [tool for tool in lines("tools.jsonl") if tool["name"] not in CORE]
    # Names that stand in two groups are left alone: they are called by another name.
    names = [tool["name"] for tool in tools]
    tools = [tool for tool in tools if names.count(tool["name"]) == 1]
    asked = {}
    for query in lines("queries.jsonl"):
        if query["lang"] == "en" and query["kind"] in ("task", "symptom", "keywords") and len(query["relevant"]) == 1:
            asked.setdefault(query["relevant"][0], []).append(query["query"])
    for number in range(1, SESSIONS + 1):
        for turn in session(number, rng, tools, asked):
            print(json.dumps(turn, ensure_ascii=False))


if __name__ == "__main__":
    main()
