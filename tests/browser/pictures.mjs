// Makes the pictures of docs/setup.md anew: the flow as an administrator sees it, with the tools of tests/quality.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { base, browser, close, finish, press, ranker, rest, signedIn } from './lib.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = here('../../docs/setup');
mkdirSync(folder, { recursive: true });

const page = await signedIn({ viewport: { width: 1280, height: 800 } });
// WebP is a quarter of PNG here, and chromium writes it.
const canvas = await (await browser.newContext()).newPage();

async function picture(name) {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement?.blur());
  const png = await page.screenshot();
  const webp = await canvas.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality: 0.9 });
    const bytes = new Uint8Array(await blob.arrayBuffer());
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  }, png.toString('base64'));
  writeFileSync(`${folder}/${name}.webp`, Buffer.from(webp, 'base64'));
  console.log(`docs/setup/${name}.webp`);
}

const at = (path) => page.goto(`${base}/ui/users/ada/${path}`);
const on = () => press(page, '.flow .primary');
const known = 'tell the customer that the parcel is late';
const best = ['track_parcel', 'reply_to_ticket', 'send_email', 'get_order_status', 'reply_to_email', 'create_ticket'];
const endpoint = await ranker({ port: 8080, known, best }).catch(() => ranker({ known, best }));

await at('setup/import');
await picture('import');
await page.setInputFiles('#file', here('../quality/tools.jsonl'));
await press(page, 'button[value=text]');
await page.waitForURL(/review/);
const decide = async (name, button) => {
  await page.check(`[name=tool][value="${name}"]`);
  await press(page, `button[value=${button}]`);
};
await decide('github__create_issue', 'core');
await decide('slack__search_messages', 'exclude');
await page.fill('input[name=alias]', 'report a bug');
await decide('tracker__create_issue', 'alias');
await picture('review');
await on();
const take = page.locator('button[value=take]');
if (await take.count()) await press(page, take);
await page.locator('details.fold summary').first().click();
await page.locator('details.fold input[name=tool]').first().waitFor();
await picture('groups');
await on();
await page.fill('#endpoint', endpoint.url);
await page.fill('#model', 'bge-reranker-v2-m3');
await page.fill('#query', known);
await press(page, 'button[value=test]');
await picture('matcher');
await press(page, 'button[value=skip]');
await page.waitForURL(/scope/);
await page.selectOption('#keep_missed_queries', 'on');
await page.fill('#max_warm_tools', '6');
await picture('scope');
await on();
await page.waitForURL(/apply/);
await picture('apply');
await on();
await page.waitForURL(/overview/);

// A day's work of agents.
const asked = [known, 'book a room for friday', 'what did we sell last week', 'zzyzx'];
for (let number = 0; number < 12; number++) {
  const who = { user: 'ada', session: `chat-${number}`, format: 'openai_chat' };
  for (const query of asked.slice(number % 3)) {
    await rest('POST', '/v1/assemble', who);
    const { results } = await rest('POST', '/v1/search', { user: who.user, session: who.session, query });
    const name = results[0].matches[0]?.name;
    if (name) await rest('POST', '/v1/call', { user: who.user, session: who.session, name, arguments: {} }).catch(() => {});
  }
}
await at(`playground?q=${encodeURIComponent(known)}`);
await picture('playground');
await at('overview');
await picture('overview');

await at('setup/scope');
await page.fill('#max_warm_tools', '8');
await on();
await page.waitForURL(/apply/);
await rest('PATCH', '/v1/users/ada/config', { max_warm_tools: 4 });
await at('setup/apply');
await picture('conflict');
await at('setup/versions');
await page.locator('details.fold summary').nth(1).click();
await picture('versions');
endpoint.close();
await finish(page);
await close();
