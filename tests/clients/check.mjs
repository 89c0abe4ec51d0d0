// As check.py, for the libraries of npm. The libraries are those of the folder that is the first argument.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.argv[2]}/`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, jsonSchema, tool } = await load('ai');
const { MockLanguageModelV3 } = await load('ai/test');
const { Client } = await load('@modelcontextprotocol/sdk/client');
const { CallToolResultSchema, JSONRPCMessageSchema } = await load('@modelcontextprotocol/sdk/types.js');

// Lists part by part, so that a fault tells which it is.
function same(what, got, wanted) {
  const parts = Array.isArray(got) && Array.isArray(wanted) && got.length === wanted.length;
  if (parts) return wanted.forEach((part, at) => same(`${what}[${at}]`, got[at], part));
  if (!isDeepStrictEqual(got, wanted)) {
    throw new Error(`other ${what}: ${brief(got)} for ${brief(wanted)}`);
  }
}

function brief(value) {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length < 400 ? text : `${text.slice(0, 400)}…`;
}

// Zod says where and what in a list.
function told(error) {
  return error.issues?.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ') ?? error.message;
}

// Tools as `{name, description, parameters}`: the model is handed the same ones.
async function aiTools(tools) {
  const named = tools.map(({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters) }),
  ]);
  const model = new MockLanguageModelV3({
    doGenerate: {
      content: [{ type: 'text', text: 'done' }],
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
      warnings: [],
    },
  });
  await generateText({ model, prompt: 'hi', tools: Object.fromEntries(named) });
  const told = model.doGenerateCalls[0].tools.map(({ name, description, inputSchema: parameters }) =>
    description === undefined ? { name, parameters } : { name, description, parameters },
  );
  same('tools', told, tools);
}

// A connection to a server that gives these results.
async function connected(results) {
  const transport = {
    start: async () => {},
    close: async () => {},
    send: async ({ id, method, params }) => {
      if (id === undefined) return;
      const initialized = {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'toolrack', version: '0' },
      };
      transport.onmessage({ jsonrpc: '2.0', id, result: method === 'initialize' ? initialized : results[method] });
    },
  };
  const client = new Client({ name: 'test', version: '0' });
  await client.connect(transport);
  return client;
}

async function mcpTools(tools) {
  const wrong = [];
  for (const one of tools) {
    // Each alone, so that a fault tells which it is. The client compiles the output schemas as well.
    const client = await connected({ 'tools/list': { tools: [one] } });
    await client.listTools().catch((error) => wrong.push(`${told(error)} in ${brief(one)}`));
  }
  if (wrong.length > 0) throw new Error(wrong.slice(0, 5).join('\n  '));
  // Of the rest the library leaves out what it does not know.
  const read = ({ name, description, inputSchema, outputSchema }) => ({ name, description, inputSchema, outputSchema });
  const client = await connected({ 'tools/list': { tools } });
  same('tools', (await client.listTools()).tools.map(read), tools.map(read));
}

async function mcpMessage(message) {
  const { result } = JSONRPCMessageSchema.parse(message);
  same('result', CallToolResultSchema.parse(result), message.result);
  const client = await connected({ 'tools/call': result });
  same('result', await client.callTool({ name: 'any', arguments: {} }), message.result);
}

const KINDS = {
  'ai tools': aiTools,
  '@modelcontextprotocol/sdk tools': mcpTools,
  '@modelcontextprotocol/sdk message': mcpMessage,
};

// Ajv tells of formats that it does not know.
console.warn = () => {};

const checked = {};
const faults = [];
for (const { library, kind, label, value } of JSON.parse(readFileSync(0, 'utf8'))) {
  const name = `${library} ${kind}`;
  checked[name] = (checked[name] ?? 0) + 1;
  try {
    await KINDS[name](value);
  } catch (error) {
    faults.push({ kind: name, label, fault: `${error.name}: ${told(error)}`.slice(0, 3000) });
  }
}
console.log(JSON.stringify({ checked, faults }));
