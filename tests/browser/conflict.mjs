// Two tabs in each other's way, and taking a change back.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { base, finish, press, rest, shot, signedIn } from './lib.mjs';

describe('conflicts and undo', () => {
  const user = `${base}/ui/users/bob/`;
  const config = () => rest('GET', '/v1/users/bob/config');
  let first;
  let second;

  before(async () => {
    await rest('PUT', '/v1/users/bob/catalog', { tools: [{ name: 'send_mail', description: 'Sends a message.' }] });
    await rest('PUT', '/v1/users/bob/config', { max_warm_tools: 3 });
    await rest('PUT', '/v1/users/bob/config', { max_warm_tools: 4 });
    first = await signedIn({ expected: ['status of 412', 'status of 409'] });
    second = await first.context().newPage();
  });

  after(() => finish(first));

  test('who applies second sees both values and goes on', async () => {
    await first.goto(`${user}setup/scope`);
    await first.fill('#max_warm_tools', '7');
    await press(first, '.flow button.primary');
    await first.waitForURL(/setup\/apply/);

    await second.goto(`${user}setup/versions`);
    await second.locator('summary', { hasText: 'Version 1' }).click();
    await press(second, second.getByRole('button', { name: 'Put version 1 back' }));
    await second.waitForURL(/restored=1/);
    assert.deepEqual(await config(), { max_warm_tools: 3 });

    await press(first, first.getByRole('button', { name: 'Apply to bob' }));
    assert.equal(await first.locator('main h1').innerText(), 'Edit conflict');
    const row = first.locator('tbody tr', { hasText: 'max_warm_tools' });
    assert.deepEqual(await row.locator('td .clip').allInnerTexts(), ['3', '7']);
    assert.deepEqual(await config(), { max_warm_tools: 3 }, 'nothing is overwritten');
    await shot(first, 'conflict');

    await press(first, first.getByRole('button', { name: 'Go on with these' }));
    await first.waitForURL(/setup\/apply/);
    assert.match(await first.locator('ul.diff').innerText(), /3\s+max_warm_tools: 7/);
    await press(first, first.getByRole('button', { name: 'Apply to bob' }));
    await first.waitForURL(/overview/);
    assert.deepEqual(await config(), { max_warm_tools: 7 });
  });

  test('an earlier version is put back, and that again', async () => {
    await second.goto(`${user}setup/versions`);
    const versions = await second.locator('summary').allInnerTexts();
    assert.equal(versions.length, 5);
    assert.match(versions[4], /Version 0/);
    assert.match(versions[0], /Version 4.*in force/);
    await second.locator('summary', { hasText: 'Version 2' }).click();
    await shot(second, 'versions');
    await press(second, second.getByRole('button', { name: 'Put version 2 back' }));
    await second.waitForURL(/restored=2/);
    assert.match(await second.getByRole('status').first().innerText(), /Version 2 was put back/);
    assert.deepEqual(await config(), { max_warm_tools: 4 });
    await second.locator('summary', { hasText: 'Version 4' }).click();
    await press(second, second.getByRole('button', { name: 'Put version 4 back' }));
    await second.waitForURL(/restored=4/);
    assert.deepEqual(await config(), { max_warm_tools: 7 });
  });

  test('a step that was open while another window changed the draft overwrites nothing', async () => {
    await first.goto(`${user}setup/scope`);
    await second.goto(`${user}setup/scope`);
    await second.fill('#max_warm_tools', '11');
    await press(second, '.flow button.primary');
    await first.fill('#max_warm_tools', '12');
    await press(first, '.flow button.primary');
    assert.match(await first.getByRole('status').first().innerText(), /changed in another window/);
    assert.equal(await first.inputValue('#max_warm_tools'), '11', 'the present page');
    assert.match(await first.locator('main').innerText(), /max_warm_tools\s+12/, 'what was sent');
    await shot(first, 'stale-step');
    await press(first, first.getByRole('button', { name: 'all the same' }));
    assert.match(await first.locator('ul.diff').innerText(), /max_warm_tools: 12/);
    await first.locator('summary', { hasText: 'Throw draft away' }).click();
    await press(first, first.getByRole('button', { name: 'Yes, throw it away' }));
  });

  test('a page that was open before a change puts nothing back by mistake', async () => {
    const stale = await first.context().newPage();
    await stale.goto(`${user}setup/versions`);
    await stale.locator('summary', { hasText: 'Version 1' }).click();
    await rest('PATCH', '/v1/users/bob/config', { max_warm_tools: 9 });
    await press(stale, stale.getByRole('button', { name: 'Put version 1 back' }));
    assert.deepEqual(await config(), { max_warm_tools: 9 });
    await shot(stale, 'stale');
    await stale.close();
  });
});
