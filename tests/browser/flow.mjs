// From an empty scope to a search that works, as an administrator walks it with 1,000 tools.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { base, deadEndpoint, finish, press, ranker, rest, shot, signedIn, tools, toolsFile } from './lib.mjs';

describe('the setup flow', () => {
  const user = '/ui/users/alice/';
  // Words that no tool has, so that only the alias leads to it.
  const alias = 'ring the old ferryman';
  const summary = (page, name) => page.locator('details.fold', { has: page.locator('summary', { hasText: name }) });

  let page;
  let endpoint;
  // Names of tools, as they are met on the way.
  const chosen = {};
  let stored;

  before(async () => {
    page = await signedIn();
    endpoint = await ranker();
  });

  after(async () => {
    endpoint.close();
    await finish(page);
  });

  const heading = () => page.locator('main h1').innerText();

  test('an empty server says how to begin', async () => {
    await page.goto(`${base}/ui/users/alice/overview`);
    assert.match(await page.locator('main').innerText(), /No tools yet/);
    await shot(page, 'overview-empty');
    await press(page, page.getByRole('link', { name: 'Import tools' }));
    assert.equal(await heading(), 'Import tools');
  });

  test('what is no tool list is told, and what was typed stays', async () => {
    await page.fill('#text', 'neither: [json');
    await press(page, 'button[value=text]');
    assert.match(await page.getByRole('alert').innerText(), /^Not read:/);
    assert.equal(await page.inputValue('#text'), 'neither: [json');
    await page.fill('#text', '');
  });

  test('1,000 tools are imported from a file', async () => {
    await page.setInputFiles('#file', toolsFile);
    await press(page, 'button[value=text]');
    await page.waitForURL(/setup\/review/);
    const all = await page.locator('nav.tabs a').first().innerText();
    stored = Number(all.replace(/\D/g, ''));
    assert.ok(stored > tools.length * 0.9 && stored <= tools.length, `${all} of ${tools.length}`);
    assert.equal(await page.locator('tbody tr').count(), 50, 'a page of them');
    await shot(page, 'review');
  });

  test('the review filters by remark and by words', async () => {
    const undescribed = page.locator('nav.tabs a', { hasText: 'No description' });
    const count = Number((await undescribed.innerText()).replace(/\D/g, ''));
    await press(page, undescribed);
    const rows = await page.locator('tbody tr').count();
    assert.equal(rows, Math.min(count, 50));
    assert.equal(await page.locator('tbody tr .tag', { hasText: 'No description' }).count(), rows);
    await press(page, page.locator('nav.tabs a').first());
    // Typed, so that the table alone is asked for.
    const name = await page.locator('tbody tr .name').nth(7).innerText();
    const part = page.waitForResponse((response) => response.url().includes('query='));
    await page.locator('input[name=query]').pressSequentially(name);
    await part;
    await page.waitForFunction((name) => {
      const names = [...document.querySelectorAll('tbody tr .name')];
      return names.length < 50 && names.some((other) => other.textContent === name);
    }, name);
  });

  test('all tools that match are decided on at once, and who chooses none is told so', async () => {
    await page.goto(`${base}${user}setup/review`);
    await press(page, 'button[value=exclude]');
    assert.match(await page.getByRole('status').first().innerText(), /^Nothing was changed:/);
    await page.check('input[name=all]');
    assert.match(await page.locator('[data-chosen]').innerText(), new RegExp(`^${stored.toLocaleString('en')} chosen`));
    await press(page, 'button[value=exclude]');
    assert.match(await page.getByRole('status').first().innerText(), /tools are left out/);
    await press(page, page.locator('nav.tabs a', { hasText: 'Left out' }));
    await page.check('input[name=all]');
    await press(page, 'button[value=include]');
    assert.match(await page.getByRole('status').first().innerText(), /let in again/);
  });

  test('tools are left out, named otherwise and made core', async () => {
    await page.goto(`${base}${user}setup/review`);
    // The worst stand first.
    const row = page.locator('tbody tr').first();
    chosen.out = await row.locator('.name').innerText();
    await row.locator('input').check();
    assert.match(await page.locator('[data-chosen]').innerText(), /^1 chosen/);
    await press(page, 'button[value=exclude]');
    const out = page.locator('tbody tr', { has: page.getByText(chosen.out, { exact: true }) }).first();
    assert.match(await out.innerText(), /left out/);

    const plain = page.locator('tbody tr:not(.dim)').filter({ has: page.locator('.name', { hasText: /^[a-z_]{6,40}$/ }) });
    chosen.alias = await plain.nth(0).locator('.name').innerText();
    chosen.core = await plain.nth(1).locator('.name').innerText();
    await page.locator(`input[name=tool][value="${chosen.alias}"]`).check();
    await page.fill('input[name=alias]', alias);
    await press(page, 'button[value=alias]');
    assert.ok((await page.locator('tbody').innerText()).includes(`also: ${alias}`));
    await page.locator(`input[name=tool][value="${chosen.core}"]`).check();
    await press(page, 'button[value=core]');
    const core = page.locator('tbody tr', { has: page.locator(`input[value="${chosen.core}"]`) });
    assert.equal(await core.locator('.tag.core').count(), 1);
    await shot(page, 'review-decided');
  });

  test('groups are proposed, renamed and joined, and a turn is priced', async () => {
    await press(page, '.flow a.primary');
    await page.waitForURL(/setup\/groups/);
    const tokens = async () => Number((await page.locator('.big-figure').first().innerText()).split(' ')[0].replace(/\D/g, ''));
    assert.ok((await tokens()) > 0);
    await shot(page, 'groups-proposed');
    const take = page.locator('button[value=take]');
    if (await take.count()) await press(page, take);
    // A group tells its number of tools, and names them when it is opened.
    const folds = page.locator('details.fold');
    assert.ok((await folds.count()) > 5, 'groups');
    assert.equal(await page.locator('input[name=tool]').count(), 0, 'nothing of groups that nobody opened');
    const sizes = await folds.locator('summary .note').evaluateAll((all) => all.map((note) => parseInt(note.textContent.replace(/,/g, ''), 10)));
    const most = Math.max(...sizes);
    const open = async (fold) => {
      await fold.locator('summary').click();
      await fold.locator('input[name=tool]').first().waitFor();
    };
    const rename = folds.nth(sizes.indexOf(most));
    await open(rename);
    assert.equal(await rename.locator('input[name=tool]').count(), Math.min(most, 100));
    if (most > 100) {
      const first = await rename.locator('input[name=tool]').first().inputValue();
      await rename.getByRole('link', { name: 'Next' }).click();
      await rename.getByRole('link', { name: 'Previous' }).waitFor();
      assert.notEqual(await rename.locator('input[name=tool]').first().inputValue(), first);
      await rename.getByRole('link', { name: 'Previous' }).click();
      await rename.locator(`input[name=tool][value="${first}"]`).waitFor();
    }
    await rename.locator('input[name=name][type=text]').first().fill('harbour');
    await rename.locator('input[name=description]').fill('Ships and berths');
    await press(page, rename.locator('button[value=edit]'));
    const told = async (name) => parseInt((await summary(page, name).locator('summary .note').innerText()).replace(/,/g, ''), 10);
    assert.equal(await told('harbour'), most, 'it has its tools under the new name');
    assert.ok(await summary(page, 'harbour').locator('input[name=tool]').first().isVisible(), 'what was edited stays open');
    const smallest = folds.last();
    await open(smallest);
    const gone = await smallest.locator('input[name=group]').first().inputValue();
    const size = await smallest.locator('input[name=tool]').count();
    await smallest.locator('input[list=groups]').fill('harbour');
    await press(page, smallest.locator('button[value=merge]'));
    const names = await page.locator('datalist#groups option').evaluateAll((options) => options.map((option) => option.value));
    assert.ok(!names.includes(gone), `${gone} is joined`);
    assert.equal(await told('harbour'), most + size);
    const core = page.locator('section.card', { hasText: 'Core tools' });
    assert.ok(await core.locator(`input[name=selector][value="${chosen.core}"]`).isChecked(), 'core as it was made in the review');
    await shot(page, 'groups');
  });

  test('a group is left out as a whole, and taken back', async () => {
    const groups = async () => page.locator('datalist#groups option').evaluateAll((options) => options.map((option) => option.value));
    const before = await groups();
    await summary(page, 'harbour').locator('button[value=out]').waitFor();
    await press(page, summary(page, 'harbour').locator('button[value=out]'));
    assert.ok(!(await groups()).includes('harbour'));
    await shot(page, 'groups-left-out');
    await press(page, page.getByRole('button', { name: 'Take back @harbour' }));
    assert.deepEqual((await groups()).sort(), before.sort());
  });

  test('a dead endpoint is told with what to do; a living one ranks the tools of the draft; doing without is fine', async () => {
    await press(page, '.flow a.primary');
    await page.waitForURL(/setup\/matcher/);
    const test = async (address) => {
      await page.fill('#endpoint', address);
      await page.fill('#api_key', 'sk-of-no-account');
      await page.fill('#query', 'create an issue about a broken page');
      await press(page, 'button[value=test]');
    };
    await test(deadEndpoint);
    const fault = await page.getByRole('alert').innerText();
    assert.match(fault, /unreachable/);
    assert.ok(fault.length > 60, `a fault and what to do: ${fault}`);
    assert.match(await page.locator('main').innerText(), /would go on by keywords/);
    assert.ok(!(await page.content()).includes('sk-of-no-account'), 'a key is never shown again');
    await shot(page, 'matcher-dead');

    await test(endpoint.url);
    const text = await page.locator('main').innerText();
    assert.match(text, /It answers:/);
    assert.doesNotMatch(text, /built-in sample/);
    assert.ok((await page.locator('ol.hits').nth(1).locator('li').count()) > 3, 'both rankings');
    await shot(page, 'matcher-answers');

    await press(page, 'button[value=skip]');
    await page.waitForURL(/setup\/scope/);
  });

  test('the scope step says where values come from', async () => {
    await page.selectOption('#keep_missed_queries', 'on');
    await page.fill('#max_warm_tools', '6');
    await page.check('input[name=warm_policy][value=immediate]');
    await shot(page, 'scope');
    await press(page, '.flow button.primary');
    await page.waitForURL(/setup\/apply/);
  });

  test('nothing is in force before the difference is seen and applied', async () => {
    const catalog = await rest('GET', '/v1/users/alice/catalog');
    assert.deepEqual(catalog.tools, []);
    assert.deepEqual(await rest('GET', '/v1/users/alice/config'), {});
    const lines = (await page.locator('ul.diff').allInnerTexts()).join('\n');
    for (const told of ['harbour', chosen.core, chosen.out, alias, 'max_warm_tools: 6']) {
      assert.ok(lines.includes(told), `the difference tells ${told}`);
    }
    assert.match(await page.locator('main').innerText(), new RegExp(`${stored.toLocaleString('en')} added`));
    await shot(page, 'apply');
    await press(page, '.flow button.primary');
    await page.waitForURL(/overview/);
    assert.match(await page.locator('main').innerText(), /Applied\./);
    await shot(page, 'overview-applied');
  });

  test('the playground finds what was named in the review', async () => {
    await page.goto(`${base}${user}playground`);
    await page.fill('input[name=q]', alias);
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=/);
    assert.equal(await page.locator('ol.hits .name').first().innerText(), chosen.alias);
    await shot(page, 'playground');
  });

  test('agents get the new setup over REST', async () => {
    const { results } = await rest('POST', '/v1/search', { user: 'alice', query: alias });
    assert.equal(results[0].matches[0].name, chosen.alias);
    const turn = await rest('POST', '/v1/assemble', { user: 'alice', session: 'one', format: 'openai_chat' });
    const sent = turn.tools.map((tool) => tool.function.name);
    assert.ok(sent.includes('tool_search') && sent.length < 40, `${sent}`);
    const names = new Map(Object.entries(turn.name_map ?? {}));
    assert.ok(sent.some((name) => (names.get(name) ?? name) === chosen.core), 'core is in the array');
    assert.ok(turn.tokens.tools + turn.tokens.listing < turn.tokens.all / 4, JSON.stringify(turn.tokens));
    const catalog = await rest('GET', '/v1/users/alice/catalog');
    assert.equal(catalog.tools.length, stored);
  });
});
