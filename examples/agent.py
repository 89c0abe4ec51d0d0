#!/usr/bin/env python3
"""A complete agent loop against Toolrack, written with the standard library only.

    toolrack serve --no-auth &
    python3 examples/agent.py [--url http://127.0.0.1:8480] [--key KEY]

The model is a script, so that every run is the same; put your provider's client in its place. The tools run here, in the
agent: Toolrack finds and checks calls and never runs anything. Exits with 1 if something did not go as expected.
"""

import argparse
import json
import re
import socket
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

USER = "example-python"
CATALOG = json.loads(Path(__file__).with_name("catalog.json").read_text(encoding="utf-8"))

# The functions that the agent really runs, by the names of its own catalog.
NOTEBOOK = []


def append_note(notebook, text):
    NOTEBOOK.append(text)
    return {"notebook": notebook, "lines": len(NOTEBOOK)}


FUNCTIONS = {
    "convert_currency": lambda amount, to, **_: {"amount": round(amount * 160.25, 2), "currency": to},
    "notes.append": append_note,
}


class Refused(Exception):
    """Toolrack answered with a problem document (RFC 9457)."""

    def __init__(self, problem):
        super().__init__(f"{problem['status']} {problem['code']}: {problem.get('detail', '')}")
        self.code = problem["code"]


class Toolrack:
    def __init__(self, url, key=None):
        self.url = url.rstrip("/")
        self.headers = {"content-type": "application/json"}
        if key:
            self.headers["authorization"] = f"Bearer {key}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def request(self, method, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self.headers, method=method)
        try:
            with self.opener.open(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error)) from None


class Agent:
    """One conversation: asks for a tool array before each turn and carries out what the model calls."""

    def __init__(self, toolrack, session):
        self.toolrack = toolrack
        self.scope = {"user": USER, "session": session}
        self.tools, self.listing, self.name_map, self.fingerprint = None, None, {}, None
        self.note = None

    def assemble(self, **fields):
        """Refreshes the tool array. Says whether it changed; an equal one is not even sent."""
        body = {**self.scope, "format": "openai_chat", **fields}
        if self.fingerprint:
            body["if_fingerprint"] = self.fingerprint
        try:
            answer = self.toolrack.request("POST", "/v1/assemble", body)
        except OSError as error:  # unreachable or too slow: an agent must not stop working for that
            say("!", f"Toolrack is down ({error}); going on without it")
            if self.tools is None:
                self.tools, self.name_map = every_tool()
            return {"changed": False}
        self.fingerprint = answer["fingerprint"]
        if answer["changed"]:
            self.tools, self.listing, self.name_map = answer["tools"], answer["listing"], answer.get("name_map", {})
        note = (answer.get("listing_changes") or {}).get("text")
        if note and note != self.note:  # the catalog was edited: this line belongs at the end of the conversation
            self.note = note
            say("note", note)
        return answer

    def run(self, calls):
        """Carries out the calls of one turn through the bridge; returns the messages for the model."""
        body = {**self.scope, "format": "openai_chat", "calls": calls}
        try:
            results = self.toolrack.request("POST", "/v1/bridge", body)["results"]
        except OSError:  # direct calls work without Toolrack
            results = [as_dispatch(call) for call in calls]
        return [self.answer(result) for result in results]

    def answer(self, result):
        if result["action"] == "respond":  # search, describe, or a call that was wrong: Toolrack wrote the answer
            return result["message"]
        # Approvals and hooks belong here: these are real names and checked arguments, and nothing has run yet.
        outputs = [self.execute(call) for call in result["calls"]]
        content = outputs[0] if len(outputs) == 1 else outputs
        return {"role": "tool", "tool_call_id": result["reply_to"]["id"], "content": json.dumps(content)}

    def execute(self, call):
        name = self.name_map.get(call["name"], call["name"])
        say("run", f"{name}({json.dumps(call['arguments'])})")
        if name not in FUNCTIONS:
            return {"error": f"{name} is not available now"}
        return FUNCTIONS[name](**call["arguments"])

    def names(self):
        return [tool["function"]["name"] for tool in self.tools or []]

    def wire_name(self, stored):
        """What the model calls a tool whose own name the provider would refuse."""
        return next((wire for wire, name in self.name_map.items() if name == stored), stored)


def every_tool():
    """The whole catalog as an OpenAI array, for the day when Toolrack cannot be asked at all."""
    tools, name_map = [], {}
    for tool in CATALOG:
        wire = re.sub(r"[^A-Za-z0-9_-]", "_", tool["name"])[:64]
        name_map[wire] = tool["name"]
        function = {"name": wire, "description": tool["description"], "parameters": tool["parameters"]}
        tools.append({"type": "function", "function": function})
    return tools, name_map


def as_dispatch(call):
    """A direct call of the model in the form in which the bridge hands it back."""
    function = call["function"]
    plain = {"id": call["id"], "name": function["name"], "arguments": json.loads(function["arguments"])}
    return {"action": "dispatch", "reply_to": {"id": call["id"], "name": function["name"]}, "calls": [plain]}


def model_calls(name, arguments):
    """What a provider returns when its model calls a tool."""
    say("model", f"calls {name}({json.dumps(arguments)})")
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [{"id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}]


def say(who, text):
    print(f"{who:>8}  {text}")


def expect(condition, what):
    if not condition:
        sys.exit(f"unexpected: {what}")


def conversation(toolrack, session):
    agent = Agent(toolrack, session)
    print("\n1. The first array is small; the listing tells what else there is")
    answer = agent.assemble()
    say("tools", ", ".join(agent.names()))
    say("listing", agent.listing["text"].replace("\n", "\n" + " " * 10))
    expect("tool_search" in agent.names() and "convert_currency" not in agent.names(), "no bridge, or nothing deferred")
    expect("get_time" in agent.names(), "the core tool is missing")

    print("\n2. The model searches; what it found is a normal tool on the next turn")
    [message] = agent.run(model_calls("tool_search", {"query": "convert an amount of money into another currency"}))
    say("result", message["content"][:160] + " ...")
    expect("convert_currency" in message["content"], "the search did not find convert_currency")
    agent.assemble()
    say("tools", ", ".join(agent.names()))
    expect("convert_currency" in agent.names(), "the found tool is not warm")
    [message] = agent.run(model_calls("convert_currency", {"amount": 20, "from": "EUR", "to": "JPY"}))
    say("result", message["content"])
    expect("3205" in message["content"], "the currency was not converted")

    print("\n3. A listed tool needs no search: describe it, call it through the bridge")
    [message] = agent.run(model_calls("tool_describe", {"name": "notes.append"}))
    expect("notebook" in message["content"], "the description has no schema")
    [message] = agent.run(model_calls("tool_call", {"name": "notes.append", "arguments": {"notebook": "trip"}}))
    say("result", message["content"][:160] + " ...")
    expect("text" in message["content"] and not NOTEBOOK, "a missing argument was not noticed")
    note = {"notebook": "trip", "text": "20 EUR are 3205 JPY"}
    [message] = agent.run(model_calls("tool_call", {"name": "notes.append", "arguments": note}))
    expect("lines" in message["content"], "the bridged call did not run")

    print("\n4. From now on the model calls it directly, under a name that the provider accepts")
    agent.assemble()
    wire = agent.wire_name("notes.append")
    say("tools", ", ".join(agent.names()))
    expect(wire in agent.names() and "." not in wire, "notes.append did not become a warm tool")
    [message] = agent.run(model_calls(wire, note))
    expect("lines" in message["content"], "the direct call did not run")

    print("\n5. Nothing new: the fingerprint saves the transfer, and the prompt cache stays warm")
    answer = agent.assemble()
    say("changed", str(answer["changed"]).lower())
    expect(answer["changed"] is False and "tools" not in answer, "an equal array was sent again")
    return agent


def live_tools(toolrack, session):
    """An agent whose tools come and go can send them along and later name them by a reference."""
    print("\n6. A reference that Toolrack does not know (any more): send the tools again")
    agent = Agent(toolrack, session)
    try:
        agent.assemble(tools_ref="from-an-earlier-life")
        expect(False, "an unknown tools_ref was accepted")
    except Refused as refused:
        expect(refused.code == "unknown_tools_ref", str(refused))
        say("refused", str(refused))
    reference = agent.assemble(tools=CATALOG)["tools_ref"]
    answer = agent.assemble(tools_ref=reference)
    expect(answer["changed"] is False, "the reference gave another array than the tools")
    say("ref", f"{reference[:16]}... now stands for {len(CATALOG)} tools")


def outage(agent):
    print("\n7. Toolrack down: keep the last array, or fall back to all tools")
    with socket.socket() as free:  # a port on which nobody listens
        free.bind(("127.0.0.1", 0))
        nowhere = Toolrack("http://127.0.0.1:%d" % free.getsockname()[1])
    before, agent.toolrack = agent.names(), nowhere
    agent.assemble()
    expect(agent.names() == before, "the last array was lost")
    [message] = agent.run(model_calls("convert_currency", {"amount": 1, "from": "EUR", "to": "JPY"}))
    expect("160.25" in message["content"], "a direct call needs Toolrack")
    stranger = Agent(nowhere, "new")
    stranger.assemble()
    expect(len(stranger.names()) == len(CATALOG), "the fallback is not the whole catalog")
    say("tools", f"{len(before)} kept in the running conversation, {len(CATALOG)} in a new one")


def main():
    parser = argparse.ArgumentParser(description="An agent loop with a scripted model against Toolrack")
    parser.add_argument("--url", default="http://127.0.0.1:8480")
    parser.add_argument("--key", help="bearer key, if the server asks for one")
    options = parser.parse_args()
    toolrack = Toolrack(options.url, options.key)
    answer = toolrack.request("PUT", f"/v1/users/{USER}/catalog", {"tools": CATALOG})
    say("catalog", f"{len(CATALOG)} tools uploaded, version {answer['catalog_version'][:12]}")
    run = uuid.uuid4().hex[:8]
    agent = conversation(toolrack, f"chat-{run}")
    live_tools(toolrack, f"live-{run}")
    outage(agent)
    print("\nall as expected")


if __name__ == "__main__":
    try:
        main()
    except (OSError, Refused) as error:
        sys.exit(str(error))
