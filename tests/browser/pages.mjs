// Every page, light and dark, on a phone, in Chinese, without JavaScript, and as axe-core sees it.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { axeSource, base, cutOff, finish, open, overflow, press, rest, shot, signedIn } from './lib.mjs';

describe('all pages', () => {
  const alice = '/ui/users/alice/';
  const dora = '/ui/users/dora/';

  // Name of the screenshot and path. Alice has what the flow set up and some use; Dora has a draft and changes that wait.
  const pages = [
    ['scopes', '/ui/scopes'],
    ['keys', '/ui/keys'],
    ['audit', '/ui/audit'],
    ['overview', `${alice}overview`],
    ['overview-unused', `${dora}overview`],
    ['overview-empty', '/ui/users/nobody/overview'],
    ['catalog', `${alice}catalog`],
    ['catalog-held', `${dora}catalog`],
    ['tool', `${dora}catalog/tool?name=send_mail`],
    ['reviews', `${dora}reviews`],
    ['sessions', `${alice}sessions`],
    ['session', `${alice}sessions/one`],
    ['playground', `${alice}playground?q=create+an+issue`],
    ['import', `${dora}setup/import`],
    ['review', `${dora}setup/review`],
    ['review-1000', `${alice}setup/review?alias=ring+the+bell`],
    ['groups', `${dora}setup/groups`],
    ['group', `${dora}setup/groups?group=calendar`],
    ['review-out', `${alice}setup/review?kind=out&said=include&count=3&left=1`],
    ['matcher', `${dora}setup/matcher`],
    ['scope', `${dora}setup/scope`],
    ['apply', `${dora}setup/apply`],
    ['versions', `${dora}setup/versions`],
    ['servers', `${dora}setup/servers`],
    ['conflict', '/ui/users/erin/setup/apply'],
  ];

  const mail = (name, description, group = 'mail') => ({
    name,
    description,
    group,
    parameters: { type: 'object', properties: { to: { type: 'string', description: 'Whom it goes to.' } } },
  });

  before(async () => {
    const alias = 'ring the old ferryman';
    for (const session of ['one', 'two']) {
      await rest('POST', '/v1/assemble', { user: 'alice', session, format: 'openai_chat' });
      await rest('POST', '/v1/search', { user: 'alice', session, queries: [alias, 'qqxx zzvv', 'create an issue'] });
      await rest('POST', '/v1/assemble', { user: 'alice', session, format: 'openai_chat' });
    }
    const many = ['send_mail', 'read_mail', 'find_mail'].map((name) => mail(name, `What ${name} does with messages.`));
    many.push(...['create', 'update', 'delete'].map((verb) => mail(`${verb}_event`, `To ${verb} an event.`, 'calendar')));
    await rest('PUT', '/v1/users/dora/catalog', { tools: many });
    await rest('PUT', '/v1/users/dora/config', { require_review_on_change: true });
    await rest('PUT', '/v1/users/dora/catalog', { tools: [{ ...many[0], description: 'Sends every message twice.' }, ...many.slice(1)] });
    await rest('POST', '/v1/keys', { name: 'agents', role: 'agent', users: ['*'], projects: [] });
    const page = await signedIn();
    await page.goto(`${base}${dora}setup/matcher`);
    await page.fill('#endpoint', 'https://rank.example.com/v2/rerank');
    await press(page, 'button[value=on] >> nth=0');
    await page.fill('#max_warm_tools', '5');
    await press(page, '.flow button.primary');
    await page.goto(`${base}/ui/users/erin/setup/scope`);
    await page.fill('#max_warm_tools', '5');
    await press(page, '.flow button.primary');
    await page.waitForURL(/setup\/apply/);
    await rest('PUT', '/v1/users/erin/config', { max_warm_tools: 6, core: ['send_mail'] });
    await finish(page);
  });

  async function visit(page, path) {
    const response = await page.goto(base + path);
    assert.equal(response.status(), 200, path);
  }

  for (const scheme of ['light', 'dark']) {
    test(`axe-core finds nothing serious (${scheme})`, async () => {
      const page = await signedIn({ colorScheme: scheme });
      const found = [];
      const look = async (name, path) => {
        const cut = await cutOff(page);
        if (cut.length) found.push(`${path}: cut off: ${cut}`);
        await page.evaluate(axeSource);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        for (const { impact, id, nodes } of violations) {
          const line = `${path}: ${impact} ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 160)} | ${nodes[0].any[0]?.message ?? ''}`;
          if (impact === 'serious' || impact === 'critical') found.push(line);
          else console.log(line);
        }
        await shot(page, `${name}-${scheme}`);
      };
      for (const [name, path] of pages) {
        await visit(page, path);
        // What is folded is looked at as well.
        await page.evaluate(() => {
          for (const fold of [...document.querySelectorAll('details')].slice(0, 8)) fold.open = true;
        });
        await look(name, path);
      }
      const outside = await open({ colorScheme: scheme });
      await outside.goto(`${base}/ui/sign-in`);
      await outside.evaluate(axeSource);
      const { violations } = await outside.evaluate(() => globalThis.axe.run());
      found.push(...violations.filter(({ impact }) => /serious|critical/.test(impact)).map(({ id }) => `sign-in: ${id}`));
      await shot(outside, `sign-in-${scheme}`);
      await finish(outside);
      assert.deepEqual(found, []);
      const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const bright = ground.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) > 380;
      assert.equal(bright, scheme === 'light', `the ground is ${ground}`);
      await finish(page);
    });
  }

  describe('on a phone', () => {
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

    test('no page scrolls sideways', async () => {
      const page = await signedIn(phone);
      const wide = [];
      for (const [name, path] of [...pages, ['setup', `${alice}setup/import`]]) {
        await visit(page, path);
        await page.evaluate(() => {
          for (const fold of [...document.querySelectorAll('details')].slice(0, 4)) fold.open = true;
        });
        const by = await overflow(page);
        if (by > 0) wide.push(`${path} by ${by} px`);
        const cut = await cutOff(page);
        if (cut.length) wide.push(`${path}: cut off: ${cut}`);
        await shot(page, `phone-${name}`);
      }
      assert.deepEqual(wide, []);
      await finish(page);
    });

    test('the menu is there and leads everywhere', async () => {
      const page = await signedIn(phone);
      await visit(page, `${dora}overview`);
      for (const name of ['Playground', 'Catalog', 'Sessions', 'Setup', 'Overview']) {
        const entry = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name });
        const box = await entry.boundingBox();
        assert.ok(box.height >= 40 && box.y + box.height <= 844, `${name}: ${JSON.stringify(box)}`);
        await press(page, entry, 'tap');
        assert.equal(await entry.getAttribute('aria-current'), 'page', name);
      }
      // What leads on stands above the menu, not below it.
      await visit(page, `${dora}setup/groups`);
      await press(page, page.locator('.flow a.primary'), 'tap');
      await page.waitForURL(/setup\/matcher/);
      await finish(page);
    });
  });

  test('in Chinese every page is Chinese, and fits', async () => {
    const page = await signedIn({ locale: 'zh-CN' });
    for (const [name, path] of pages) {
      await visit(page, path);
      assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh');
      assert.match(await page.locator('main h1').innerText(), /[\u4e00-\u9fff]|nobody|send_mail|alice|dora|one/, path);
      assert.ok((await overflow(page)) <= 0, path);
      await shot(page, `chinese-${name}`);
    }
    // A choice outlives what the browser says.
    await press(page, page.getByRole('link', { name: 'English' }));
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'en');
    await finish(page);
  });

  test('without JavaScript every page is read', async () => {
    const page = await signedIn({ javaScriptEnabled: false });
    for (const [, path] of pages) {
      await visit(page, path);
      assert.ok((await page.locator('main h1').innerText()).length > 2, path);
      assert.ok((await page.locator('main').innerText()).length > 80, path);
    }
    await visit(page, `${dora}setup/groups`);
    const group = page.locator('details.fold').first();
    await group.locator('summary').click();
    await press(page, group.getByRole('link', { name: 'Open this group' }));
    assert.ok(await page.locator('#open input[name=tool]').first().isVisible(), 'a group is opened by a link');
    await finish(page);
  });

  test('a query that found nothing becomes an alias', async () => {
    const page = await signedIn();
    await visit(page, `${alice}overview`);
    await press(page, page.locator('tr', { hasText: 'qqxx zzvv' }).getByRole('link', { name: 'Make an alias' }));
    assert.equal(await page.inputValue('input[name=alias]'), 'qqxx zzvv');
    await page.locator('tbody input[type=checkbox]').first().check();
    await press(page, 'button[value=alias]');
    assert.match(await page.locator('tbody').innerText(), /qqxx zzvv/);
    assert.equal(await page.inputValue('input[name=alias]'), '');
    await finish(page);
  });

  test('a change that waits is seen in the catalog and approved', async () => {
    const page = await signedIn();
    await visit(page, `${dora}catalog`);
    assert.match(await page.locator('main').innerText(), /1 changed tool waits for approval/);
    const row = page.locator('tbody tr', { hasText: 'send_mail' });
    await press(page, row.getByRole('link', { name: 'change waits' }));
    assert.match(await page.locator('ul.diff').innerText(), /twice/);
    await press(page, page.getByRole('button', { name: 'Approve' }));
    await page.waitForURL(/approved=send_mail/);
    const tool = await rest('GET', '/v1/users/dora/catalog');
    assert.ok(tool.tools.some(({ description }) => description === 'Sends every message twice.'));
    await finish(page);
  });
});
