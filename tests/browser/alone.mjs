// What pages say when they are alone: an address that is nowhere, a form that somebody else sent, a setup that cannot be applied.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { base, finish, press, rest, shot, signedIn } from './lib.mjs';

describe('what stands in the way', () => {
  test('what is not there is a page with a way on', async () => {
    const page = await signedIn({ expected: ['status of 404'] });
    await page.goto(`${base}/ui/users/alice/nowhere`);
    assert.ok((await page.locator('main a').count()) > 1);
    await shot(page, 'not-found');
    await finish(page);
  });

  test('a form of a page that was signed out writes nothing', async () => {
    const page = await signedIn({ expected: ['status of 40'] });
    const other = await page.context().newPage();
    await page.goto(`${base}/ui/users/carol/setup/scope`);
    await page.fill('#max_warm_tools', '5');
    await other.goto(`${base}/ui/scopes`);
    await press(other, other.getByRole('button', { name: 'Sign out' }));
    await press(page, '.flow button.primary');
    assert.doesNotMatch(await page.locator('main').innerText(), /Nothing to apply/);
    assert.deepEqual(await rest('GET', '/v1/users/carol/config'), {});
    await shot(page, 'signed-out');
    await finish(page);
  });

  test('a setup that cannot be stored says where, and what was typed stays', async () => {
    const page = await signedIn();
    await page.goto(`${base}/ui/users/carol/setup/scope`);
    await page.fill('#context_window', '12');
    await press(page, '.flow button.primary');
    await page.waitForURL(/setup\/apply/);
    const told = await page.locator('main').innerText();
    assert.match(told, /context_window/);
    await shot(page, 'refused');
    await press(page, page.locator('.flow a', { hasText: 'Back' }));
    assert.equal(await page.inputValue('#context_window'), '12');
    await page.locator('summary', { hasText: 'Throw draft away' }).click();
    await press(page, page.getByRole('button', { name: 'Yes, throw it away' }));
    await page.waitForURL(/setup\/import/);
    await page.goto(`${base}/ui/users/carol/setup/scope`);
    assert.equal(await page.inputValue('#context_window'), '');
    await finish(page);
  });
});
