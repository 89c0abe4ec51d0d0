#!/usr/bin/env node
// A complete agent loop against Toolrack, written with Node's standard library only.
//
//     toolrack serve --no-auth &
//     node examples/agent.mjs [--url http://127.0.0.1:8480] [--key KEY]
//
// The model is a script, so that every run is the same; put your provider's client in its place. The tools run here, in
// the agent: Toolrack finds and checks calls and never runs anything. Exits with 1 if something did not go as expected.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { parseArgs } from "node:util";

const USER = "example-node";
const CATALOG = JSON.parse(await readFile(new URL("catalog.json", import.meta.url), "utf8"));

// The functions that the agent really runs, by the names of its own catalog.
const notebook = [];
const FUNCTIONS = {
  distance: ({ a, b }) => ({ from: a, to: b, kilometres: 1054 }),
  "notes.append": ({ notebook: name, text }) => ({ notebook: name, lines: notebook.push(text) }),
};

/** Toolrack answered with a problem document (RFC 9457). */
class Refused extends Error {
  constructor(problem) {
    super(`${problem.status} ${problem.code}: ${problem.detail ?? ""}`);
    this.code = problem.code;
  }
}

class Toolrack {
  constructor(url, key) {
    this.url = url.replace(/\/+$/, "");
    this.headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  }

  async request(method, path, body) {
    const signal = AbortSignal.timeout(30_000);
    const answer = await fetch(this.url + path, { method, headers: this.headers, body: JSON.stringify(body), signal });
    const document = await answer.json();
    if (!answer.ok) throw new Refused(document);
    return document;
  }
}

/** One conversation: asks for a tool array before each turn and carries out what the model calls. */
class Agent {
  tools = null;
  listing = null;
  nameMap = {};
  fingerprint = undefined;
  note = null;

  constructor(toolrack, session) {
    this.toolrack = toolrack;
    this.scope = { user: USER, session, format: "anthropic" };
  }

  /** Refreshes the tool array. Says whether it changed; an equal one is not even sent. */
  async assemble(fields = {}) {
    let answer;
    try {
      const body = { ...this.scope, if_fingerprint: this.fingerprint, ...fields };
      answer = await this.toolrack.request("POST", "/v1/assemble", body);
    } catch (error) {
      if (error instanceof Refused) throw error;
      // Unreachable or too slow: an agent must not stop working for that.
      say("!", `Toolrack is down (${error.cause?.code ?? error.name}); going on without it`);
      if (this.tools === null) [this.tools, this.nameMap] = everyTool();
      return { changed: false };
    }
    this.fingerprint = answer.fingerprint;
    if (answer.changed) {
      this.tools = answer.tools;
      this.listing = answer.listing;
      this.nameMap = answer.name_map ?? {};
    }
    const note = answer.listing_changes?.text;
    if (note && note !== this.note) {
      // The catalog was edited: this line belongs at the end of the conversation.
      this.note = note;
      say("note", note);
    }
    return answer;
  }

  /** Carries out the calls of one turn through the bridge; returns the message for the model. */
  async run(calls) {
    let results;
    try {
      ({ results } = await this.toolrack.request("POST", "/v1/bridge", { ...this.scope, calls }));
    } catch (error) {
      if (error instanceof Refused) throw error;
      results = calls.map(asDispatch); // direct calls work without Toolrack
    }
    // Anthropic wants the results of one turn in one user message.
    return { role: "user", content: results.flatMap((result) => this.answer(result)) };
  }

  answer(result) {
    // Search, describe, or a call that was wrong: Toolrack wrote the answer.
    if (result.action === "respond") return result.message.content;
    // Approvals and hooks belong here: these are real names and checked arguments, and nothing has run yet.
    const outputs = result.calls.map((call) => this.execute(call));
    const content = JSON.stringify(outputs.length === 1 ? outputs[0] : outputs);
    return [{ type: "tool_result", tool_use_id: result.reply_to.id, content }];
  }

  execute(call) {
    const name = this.nameMap[call.name] ?? call.name;
    say("run", `${name}(${JSON.stringify(call.arguments)})`);
    return FUNCTIONS[name]?.(call.arguments) ?? { error: `${name} is not available now` };
  }

  names() {
    return (this.tools ?? []).map((tool) => tool.name);
  }

  /** What the model calls a tool whose own name the provider would refuse. */
  wireName(stored) {
    return Object.keys(this.nameMap).find((wire) => this.nameMap[wire] === stored) ?? stored;
  }
}

/** The whole catalog as an Anthropic array, for the day when Toolrack cannot be asked at all. */
function everyTool() {
  const wire = (name) => name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
  const render = ({ name, description, parameters }) => ({ name: wire(name), description, input_schema: parameters });
  return [CATALOG.map(render), Object.fromEntries(CATALOG.map(({ name }) => [wire(name), name]))];
}

/** A direct call of the model in the form in which the bridge hands it back. */
function asDispatch({ id, name, input }) {
  return { action: "dispatch", reply_to: { id, name }, calls: [{ id, name, arguments: input }] };
}

/** What a provider returns when its model calls a tool. */
function modelCalls(name, input) {
  say("model", `calls ${name}(${JSON.stringify(input)})`);
  return [{ type: "tool_use", id: `toolu_${randomUUID().slice(0, 8)}`, name, input }];
}

function say(who, text) {
  console.log(`${who.padStart(8)}  ${text}`);
}

function expect(condition, what) {
  if (!condition) throw new Error(`unexpected: ${what}`);
}

const textOf = (message) => JSON.stringify(message.content);

async function conversation(toolrack, session) {
  const agent = new Agent(toolrack, session);
  console.log("\n1. The first array is small; the listing tells what else there is");
  await agent.assemble();
  say("tools", agent.names().join(", "));
  say("listing", agent.listing.text.replaceAll("\n", "\n" + " ".repeat(10)));
  expect(agent.names().includes("tool_search"), "the bridge is missing");
  expect(!agent.names().includes("distance"), "nothing is deferred");
  expect(agent.names().includes("get_time"), "the core tool is missing");

  console.log("\n2. The model searches; what it found is a normal tool on the next turn");
  let message = await agent.run(modelCalls("tool_search", { query: "distance in kilometres between two cities" }));
  say("result", textOf(message).slice(0, 160) + " ...");
  expect(textOf(message).includes("distance"), "the search did not find distance");
  await agent.assemble();
  say("tools", agent.names().join(", "));
  expect(agent.names().includes("distance"), "the found tool is not warm");
  message = await agent.run(modelCalls("distance", { a: "Paris", b: "Berlin" }));
  say("result", textOf(message));
  expect(textOf(message).includes("1054"), "the distance was not computed");

  console.log("\n3. A listed tool needs no search: describe it, call it through the bridge");
  message = await agent.run(modelCalls("tool_describe", { name: "notes.append" }));
  expect(textOf(message).includes("notebook"), "the description has no schema");
  message = await agent.run(modelCalls("tool_call", { name: "notes.append", arguments: { notebook: "trip" } }));
  say("result", textOf(message).slice(0, 160) + " ...");
  expect(notebook.length === 0, "a missing argument was not noticed");
  const note = { notebook: "trip", text: "Paris to Berlin is 1054 km" };
  message = await agent.run(modelCalls("tool_call", { name: "notes.append", arguments: note }));
  expect(notebook.length === 1 && textOf(message).includes("lines"), "the bridged call did not run");

  console.log("\n4. From now on the model calls it directly, under a name that the provider accepts");
  await agent.assemble();
  const wire = agent.wireName("notes.append");
  say("tools", agent.names().join(", "));
  expect(agent.names().includes(wire) && !wire.includes("."), "notes.append did not become a warm tool");
  await agent.run(modelCalls(wire, note));
  expect(notebook.length === 2, "the direct call did not run");

  console.log("\n5. Nothing new: the fingerprint saves the transfer, and the prompt cache stays warm");
  const answer = await agent.assemble();
  say("changed", String(answer.changed));
  expect(answer.changed === false && !("tools" in answer), "an equal array was sent again");
  return agent;
}

/** An agent whose tools come and go can send them along and later name them by a reference. */
async function liveTools(toolrack, session) {
  console.log("\n6. A reference that Toolrack does not know (any more): send the tools again");
  const agent = new Agent(toolrack, session);
  const refused = await agent.assemble({ tools_ref: "from-an-earlier-life" }).catch((error) => error);
  expect(refused.code === "unknown_tools_ref", `an unknown tools_ref: ${refused.message}`);
  say("refused", refused.message);
  const { tools_ref } = await agent.assemble({ tools: CATALOG });
  const again = await agent.assemble({ tools_ref });
  expect(again.changed === false, "the reference gave another array than the tools");
  say("ref", `${tools_ref.slice(0, 16)}... now stands for ${CATALOG.length} tools`);
}

async function outage(agent) {
  console.log("\n7. Toolrack down: keep the last array, or fall back to all tools");
  const nowhere = new Toolrack(`http://127.0.0.1:${await unusedPort()}`);
  const before = agent.names();
  agent.toolrack = nowhere;
  await agent.assemble();
  expect(agent.names().join() === before.join(), "the last array was lost");
  const message = await agent.run(modelCalls("distance", { a: "Oslo", b: "Rome" }));
  expect(textOf(message).includes("1054"), "a direct call needs Toolrack");
  const stranger = new Agent(nowhere, "new");
  await stranger.assemble();
  expect(stranger.names().length === CATALOG.length, "the fallback is not the whole catalog");
  say("tools", `${before.length} kept in the running conversation, ${CATALOG.length} in a new one`);
}

function unusedPort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const { values: options } = parseArgs({
  options: { url: { type: "string", default: "http://127.0.0.1:8480" }, key: { type: "string" } },
});
try {
  const toolrack = new Toolrack(options.url, options.key);
  const { catalog_version } = await toolrack.request("PUT", `/v1/users/${USER}/catalog`, { tools: CATALOG });
  say("catalog", `${CATALOG.length} tools uploaded, version ${catalog_version.slice(0, 12)}`);
  const run = randomUUID().slice(0, 8);
  const agent = await conversation(toolrack, `chat-${run}`);
  await liveTools(toolrack, `live-${run}`);
  await outage(agent);
  console.log("\nall as expected");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
