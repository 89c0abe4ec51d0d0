// Forms of the setup flow as somebody fills them: what is refused stays, waiting is told and can be stopped, rows are added.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { base, finish, press, rest, shot, signedIn } from './lib.mjs';

describe('forms of the setup', () => {
  const import_ = `${base}/ui/users/fred/setup/import`;

  test('what is refused stays in its field', async () => {
    const page = await signedIn({ expected: ['status of 422'] });
    await page.goto(import_);
    await page.fill('#text', 'neither: [json\n  <b>');
    await page.fill('#group', 'mine');
    await press(page, 'button[value=text]');
    assert.match(await page.getByRole('alert').innerText(), /^Not read:\s*Paste:/);
    assert.equal(await page.inputValue('#text'), 'neither: [json\n  <b>');
    assert.equal(await page.inputValue('#group'), 'mine');
    await page.setInputFiles('#file', { name: 'photo.json', mimeType: 'application/json', buffer: Buffer.alloc(64, 0xff) });
    await press(page, 'button[value=text]');
    assert.match(await page.getByRole('alert').innerText(), /photo\.json/);
    assert.equal(await page.inputValue('#group'), 'mine');
    await shot(page, 'import-refused');
    await page.goto(`${base}/ui/users/fred/setup/servers`);
    await page.fill('#server-name', 'files');
    await page.fill('#server-url', 'npx -y @scope/files');
    await press(page, 'button[value=save]');
    assert.match(await page.getByRole('alert').innerText(), /Address: .*no commands/);
    assert.equal(await page.inputValue('#server-url'), 'npx -y @scope/files');
    assert.equal(await page.locator('#server-url').getAttribute('aria-invalid'), 'true');
    await finish(page);
  });

  test('asking a server tells how long it takes, and can be stopped', async (context) => {
    let gone;
    const left = new Promise((done) => (gone = done));
    // One that takes a request and says nothing.
    const silent = createServer((request, response) => response.on('close', gone));
    await new Promise((done) => silent.listen(0, '127.0.0.1', done));
    context.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const page = await signedIn();
    await page.goto(import_);
    assert.match(await page.locator('main').innerText(), /30 seconds at most/);
    const stop = page.getByRole('link', { name: 'Stop' });
    assert.ok(!(await stop.isVisible()));
    await page.fill('#server-name', 'silent');
    await page.fill('#server-url', `http://127.0.0.1:${silent.address().port}/mcp`);
    const rows = page.locator('input[name=header]');
    const before = await rows.count();
    await page.getByRole('button', { name: 'One more' }).click();
    assert.equal(await rows.count(), before + 1);
    assert.match(await rows.last().getAttribute('aria-label'), new RegExp(`${before + 1}$`));
    // While a page waits for another one, only its own scripts reach it: they tell what it said, and press.
    await page.evaluate(() => {
      const button = document.querySelector('button[value=mcp]');
      const stop = document.querySelector('[data-stop]');
      const timer = setInterval(() => {
        if (!/ [1-9]\d* s of/.test(button.textContent) || !stop.checkVisibility()) return;
        clearInterval(timer);
        sessionStorage.setItem('told', button.textContent);
        stop.click();
      }, 100);
    });
    await Promise.all([page.waitForEvent('load'), page.locator('button[value=mcp]').click({ noWaitAfter: true })]);
    assert.match(await page.evaluate(() => sessionStorage.getItem('told')), /^Asking… [1-9]\d* s of at most 30 s$/);
    assert.match(page.url(), /setup\/import$/);
    assert.equal(await page.locator('button[value=mcp]').innerText(), 'List its tools');
    // Nobody waits for it any more.
    const late = new Promise((_, fail) => setTimeout(fail, 20_000, new Error('the server is still asked')).unref());
    await Promise.race([left, late]);
    assert.deepEqual((await rest('GET', '/v1/users/fred/mcp-servers')).servers, []);
    await finish(page);
  });
});
