// Who may come in, and coming in without a mouse.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { base, finish, key, open, press, shot, signIn } from './lib.mjs';

describe('signing in', () => {
  test('a wrong key is told so, and nobody is in', async () => {
    const page = await open({ expected: ['status of 422'] });
    await page.goto(`${base}/ui/users/alice/catalog`);
    assert.match(page.url(), /\/ui\/sign-in\?next=/, 'a page asks for a key first');
    await page.fill('#key', `${key.slice(0, -8)}00000000`);
    await press(page, 'button.primary');
    const told = page.getByRole('alert');
    assert.match(await told.innerText(), /^Not signed in:/);
    assert.equal(await page.inputValue('#key'), '', 'the key is not sent back');
    await shot(page, 'sign-in-wrong-key');
    await page.goto(`${base}/ui/users/alice/catalog`);
    assert.match(page.url(), /\/ui\/sign-in/, 'still outside');
    // The right one leads to where one wanted to go.
    await page.fill('#key', key);
    await press(page, 'button.primary');
    assert.equal(page.url(), `${base}/ui/users/alice/catalog`);
    await press(page, page.getByRole('button', { name: 'Sign out' }));
    assert.match(page.url(), /\/ui\/sign-in/);
    await page.goto(`${base}/ui`);
    assert.match(page.url(), /\/ui\/sign-in/, 'the cookie is worth nothing any more');
    await finish(page);
  });

  // Tab until a place is focused; every stop on the way can be seen.
  async function tabTo(page, selector) {
    for (let stops = 0; stops < 60; stops++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate((selector) => {
        const element = document.activeElement;
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        const seen = outlineStyle !== 'none' && outlineWidth !== '0px';
        return { there: element.matches(selector), seen, html: element.outerHTML.slice(0, 120) };
      }, selector);
      assert.ok(at.seen, `the focus cannot be seen on ${at.html}`);
      if (at.there) return;
    }
    assert.fail(`${selector} is not reached by Tab`);
  }

  test('one signs in, imports and leads on by keyboard alone', async () => {
    const page = await open();
    await page.goto(`${base}/ui`);
    // The field has the focus already.
    await page.keyboard.type(key);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/scopes/);
    await tabTo(page, '#scope-id');
    await page.keyboard.type('keyboard');
    await page.keyboard.press('Enter');
    await page.waitForURL(/setup\/import/);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip', 'the first stop leads past the menu');
    await page.keyboard.press('Enter');
    await tabTo(page, '#text');
    await page.keyboard.insertText('{"tools": [{"name": "send_mail", "description": "Sends a message to somebody."}]}');
    await tabTo(page, 'button[value=text]');
    await page.keyboard.press('Enter');
    await page.waitForURL(/setup\/review/);
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.name), 'query', '"/" leads to the filter');
    await tabTo(page, 'input[value=send_mail]');
    await page.keyboard.press('Space');
    assert.match(await page.locator('[data-chosen]').innerText(), /^1 chosen/);
    await tabTo(page, 'a.primary');
    await page.keyboard.press('Enter');
    await page.waitForURL(/setup\/groups/);
    await finish(page);
  });

  test('without JavaScript one signs in and reads', async () => {
    const page = await open({ javaScriptEnabled: false });
    await signIn(page);
    await page.goto(`${base}/ui/users/keyboard/setup/review?query=mail`);
    assert.match(await page.locator('main').innerText(), /send_mail/);
    await page.fill('input[name=query]', 'nothing like it');
    await press(page, 'form.bar button[type=submit]');
    assert.match(await page.locator('main').innerText(), /Nothing passes this filter/);
    await shot(page, 'without-javascript');
    await finish(page);
  });
});
