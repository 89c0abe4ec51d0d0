// What the scripts share: one browser, contexts that are watched, the way in, screenshots, requests of agents.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const { TOOLRACK_TRY_PACKAGES: packages, TOOLRACK_TRY_URL, TOOLRACK_TRY_KEY, TOOLRACK_TRY_TOOLS } = process.env;
export const base = TOOLRACK_TRY_URL;
export const key = TOOLRACK_TRY_KEY;
export const toolsFile = TOOLRACK_TRY_TOOLS;
export const tools = readFileSync(toolsFile, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

const require = createRequire(pathToFileURL(`${packages}/`));
const { chromium } = require('playwright-core');
export const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// Chromium's sandbox refuses root, and tests run as root in containers; only pages of our own are opened.
const sandbox = process.getuid() === 0 ? ['--no-sandbox'] : [];
export const browser = await chromium.launch({ executablePath: process.env.TOOLRACK_CHROMIUM, args: sandbox });
export const close = () => browser.close();

const shots = `${packages}/shots`;
mkdirSync(shots, { recursive: true });

// A page of a new context. `expected`: texts of console errors that the test provokes. What its pages do wrong is collected in
// `page.faults`, which `finish` holds empty.
export async function open({ expected = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en', ...options });
  // A debug build over 1,000 tools on a busy machine takes its time.
  context.setDefaultTimeout(60_000);
  const faults = [];
  context.on('page', (page) => watch(page, faults, expected));
  const page = await context.newPage();
  page.faults = faults;
  return page;
}

function watch(page, faults, expected) {
  page.on('console', (message) => {
    const is = message.type() === 'error' && !expected.some((text) => message.text().includes(text));
    if (is) faults.push(`console of ${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`script of ${page.url()}: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== base) faults.push(`${page.url()} asks ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 500) faults.push(`${response.status()} from ${response.url()}`);
  });
}

export async function finish(page) {
  await page.context().close();
  assert.deepEqual(page.faults, []);
}

// Presses what leads to another page, and waits until that one is there.
export async function press(page, target, how = 'click') {
  const place = typeof target === 'string' ? page.locator(target) : target;
  await Promise.all([page.waitForEvent('load'), place[how]()]);
}

export async function signIn(page, secret = key) {
  await page.goto(`${base}/ui/sign-in`);
  await page.getByLabel(/^(Key|密钥)$/).fill(secret);
  await press(page, 'button.primary');
}

export async function signedIn(options) {
  const page = await open(options);
  await signIn(page);
  return page;
}

export async function shot(page, name) {
  await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

// How far a page is wider than its window.
export async function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

// Surfaces of a page that are wider inside than outside: what does not fit is not seen, or scrolls.
export async function cutOff(page) {
  return page.evaluate(() => {
    const surfaces = [...document.querySelectorAll('main .card, main form, main table, main .notice, main .flow')];
    const wide = surfaces.filter((surface) => surface.clientWidth > 1 && surface.scrollWidth > surface.clientWidth + 1);
    return wide.map((surface) => `${surface.outerHTML.slice(0, 100)} by ${surface.scrollWidth - surface.clientWidth}`);
  });
}

// What an agent or another administrator asks.
export async function rest(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text.slice(0, 400)}`);
  return text && JSON.parse(text);
}

// A rerank endpoint on this machine, in Cohere's shape; a text is the better the more words of the query begin one of its own.
// For the query `known`, texts with one of the words `best` come first.
export async function ranker({ port = 0, known = '', best = [] } = {}) {
  const words = (text) => text.toLowerCase().match(/[a-z]{3,}/g) ?? [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const { query, documents, top_n: most } = JSON.parse(body);
    const wanted = words(query).map((word) => word.slice(0, 5));
    const results = documents.map((document, index) => {
      const own = words(document.text ?? document);
      const found = wanted.filter((word) => own.some((other) => other.startsWith(word))).length;
      const score = Math.min(1, 0.02 + (found / Math.max(1, wanted.length)) * 2);
      const place = best.findIndex((word) => (document.text ?? document).includes(word));
      if (query !== known) return { index, relevance_score: score };
      return { index, relevance_score: place < 0 ? score / 2 : 0.96 - place * 0.07 };
    });
    results.sort((a, b) => b.relevance_score - a.relevance_score);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ results: results.slice(0, most ?? results.length) }));
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/v2/rerank`, close: () => server.close() };
}

// A closed port of this machine.
export const deadEndpoint = 'http://127.0.0.1:9/rerank';
