import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {click, hover, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {range, fixed, root, frame, server, page, open, byId, forgive} from './mock_harness.mjs';

describe('states', () => {
  test('loading, then data', async () => {
    server.scenario = 'slow';
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${fixed}`);
    await byId('loading').first().waitFor();
    server.scenario = 'normal';
    await page.goto('about:blank');
    await open();
    assert.equal(await byId('loading').count(), 0);
  });

  test('empty, with advice that fits the case', async () => {
    server.scenario = 'empty';
    await open();
    assert.match(await byId('empty').first().textContent(), /No samples here.*No samples were recorded/);
    await open(`${fixed}&query=${encodeURIComponent('{process_pid="1"}')}`);
    assert.match(await byId('empty').first().textContent(), /passes the filters/);
    server.scenario = 'normal';
    await byId('empty').first().getByRole('button', {name: 'Clear the filters'}).click();
    await settled(page);
    assert.equal(await byId('empty').count(), 0);
  });

  test("shows the server's error message as text, and offers to try again", async () => {
    server.scenario = 'error';
    await open();
    assert.match(await byId('error').first().textContent(), /another reducer uses <b>this<\/b> data folder/);
    server.scenario = 'normal';
    await byId('error').first().getByRole('button', {name: 'Try again'}).click();
    await settled(page);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    forgive(/status of 500/);
  });

  test('a failed refresh keeps the data and reports the failure', async () => {
    await open();
    server.scenario = 'error';
    await byId('refresh').click();
    await settled(page);
    assert.match(await byId('stale').textContent(), /data folder\. \(The data shown was loaded at \d\d:\d\d:\d\d\.\)/);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    forgive(/status of 500/);
  });

  test('refuses an inconsistent answer', async () => {
    server.scenario = 'lying';
    await open();
    assert.match(
      await byId('error').first().textContent(),
      /from the server is inconsistent: node 1 has a name that is not listed/,
    );
  });

  test('status: the law, losses by reason, stack health', async () => {
    await open();
    assert.match(
      await byId('open-status').textContent(),
      /1 collector.*5,230 captured · 5,222 stored · 4 lost · 2\.3% of stacks cut short/,
    );
    await byId('open-status').click();
    for (const [name, value] of [
      ['captured', '5,230'],
      ['stored', '5,222'],
      ['lost', '4'],
      ['on-the-way', '4'],
    ]) {
      assert.match(await byId(`status-${name}`).textContent(), new RegExp(`^${value}`));
    }
    const panel = await page.getByRole('dialog', {name: 'Status'}).textContent();
    assert.match(panel, /lost: ring full3 samples/);
    assert.match(panel, /stacks: complete92\.1%.*stacks: deeper than the limit2\.3%/);
    await page.keyboard.press('Escape');
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  test('status: damaged data and refusals, with escaped text and the number of entries not shown', async () => {
    server.scenario = 'damaged';
    await open();
    await byId('open-status').click();
    const panel = page.getByRole('dialog', {name: 'Status'});
    const entries = await panel.getByRole('listitem').filter({hasText: /^shard /}).allTextContents();
    assert.equal(entries.length, 50);
    assert.equal(entries[0], `shard 0, maintenance: merge_tries: 1,000 (${fixtures.hostile.image})`);
    assert.equal(entries[1], `shard 1, samples: 1,001 (${fixtures.controlShown})`);
    const text = await panel.textContent();
    assert.match(text, /Collectors \(61\)many-59connected.*refused: trie_quota 1,200/);
    assert.ok(text.includes(`${fixtures.controlShown}connected`), text);
    assert.match(text, /11 more collectors; “tributary status” lists all/);
    assert.ok(text.includes(`Refused, from other nodes${fixtures.controlShown}: old_days 3`), text);
    assert.match(text, /Damaged data.*tributary check.*2 more kinds of damage; “tributary status” lists all/);
  });

  test('the theme follows the system until chosen, and the choice is kept', async () => {
    await open();
    const expectTheme = (wanted) =>
      page.waitForFunction((name) => document.documentElement.dataset.theme === name, wanted);
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await expectTheme('light');
    const light = await background();
    await page.emulateMedia({colorScheme: 'dark'});
    await expectTheme('dark');
    assert.notEqual(await background(), light);
    await byId('theme').click();
    await expectTheme('light');
    await open();
    await expectTheme('light');
    await byId('theme').click();
    await byId('theme').click();
    await page.emulateMedia({colorScheme: 'light'});
    await expectTheme('light');
  });

  test('nothing is wider than a phone', async () => {
    await page.setViewportSize({width: 390, height: 800});
    try {
      await open();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
      for (const name of ['process-filter', 'thread-filter', 'time-range', 'status']) {
        await byId(`open-${name}`).click();
        const box = await page.getByRole('dialog').boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= 390, `${name}: ${JSON.stringify(box)}`);
        await page.keyboard.press('Escape');
      }
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
