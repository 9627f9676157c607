import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {fixed, server, page, open, byId, hashParameter, lastQuery, forgive} from './mock_harness.mjs';

const answer = fixtures.stackHealth();

describe('stack health', () => {
  test('shows one line, and the reasons after a click that the address remembers', async () => {
    await open();
    // 4,517 of the 4,670 stacks that have a user part.
    assert.equal(await byId('health-share').textContent(), '96.7% of stacks complete');
    assert.ok(await byId('health-share').locator('.dot.fair').count());
    assert.equal(await byId('health-endings').count(), 0);
    await byId('health-details').click();
    assert.equal(await hashParameter('stacks'), 'open');
    assert.equal(await byId('health-details').getAttribute('aria-expanded'), 'true');
    const rows = await byId('health-endings').getByRole('listitem').allTextContents();
    assert.equal(rows.length, Object.keys(answer.endings).length);
    assert.match(rows[0], /^complete96\.00%4,517 samples/);
    assert.match(rows[1], /^kernel only0\.74%35 samples/);
    assert.match(rows[2], /^unwind table not loaded yet1\.91%90 samples.*--unwind-memory/);
    assert.match(await byId('health-frame_pointer_lost').textContent(), /^no unwind information.*-fno-omit-frame-pointer/);
    await open(`${fixed}&stacks=open`);
    assert.equal(await byId('health-endings').count(), 1);
    await byId('health-details').click();
    assert.equal(await hashParameter('stacks'), null);
  });

  test('the parts of the bar are as wide as their endings are frequent', async () => {
    await open();
    const widths = await byId('health')
      .locator('.stack-bar span')
      .evaluateAll((spans) => spans.map((span) => [span.className, parseFloat(span.style.width)]));
    const good = ([name]) => ['complete', 'kernel_only'].includes(name);
    const sorted = Object.entries(answer.endings).sort((a, b) => good(b) - good(a) || b[1] - a[1]);
    assert.deepEqual(
      widths.map(([level]) => level),
      sorted.map((entry) => (good(entry) ? 'good' : 'poor')),
    );
    widths.forEach(([, width], i) => assert.ok(Math.abs(width - (100 * sorted[i][1]) / answer.samples) < 0.01));
  });

  test('the worst executables come first, as text, and a click filters by their programs', async () => {
    await open(`${fixed}&stacks=open`);
    const culprits = byId('health-executable');
    const names = await culprits.locator('.culprit-name').allTextContents();
    assert.deepEqual(names, ['libcrypto.so.3', 'evil', '[unmapped]', fixtures.hostile.image]);
    assert.match(
      await culprits.first().textContent(),
      /^libcrypto\.so\.32\.55%120 samplesunwind table not loaded yet 90 · no unwind information 30 · in nginx, evil$/,
    );
    await culprits.first().click();
    await settled(page);
    assert.equal(lastQuery('flamegraph'), '{process_executable_name=~"nginx|evil"}');
    assert.equal(lastQuery('stack-health'), '{process_executable_name=~"nginx|evil"}');
    assert.match(await byId('totals').textContent(), /730 samples/);
    assert.equal(await byId('health-share').textContent(), '79.0% of stacks complete');
    // The filter for the program of that name replaces the earlier filter. Other filters stay.
    await byId('selector').fill('{process_executable_name=~"nginx|evil", thread_name="x"}');
    await byId('selector').press('Enter');
    await settled(page);
    await culprits.filter({hasText: 'unwind information not usable'}).click();
    await settled(page);
    assert.equal(lastQuery('flamegraph'), '{process_executable_name="evil", thread_name="x"}');
  });

  test('shows how many samples the endings cover when raw samples have expired', async () => {
    await open(`${fixed}&stacks=open`);
    assert.equal(await byId('health-coverage').count(), 0);
    server.scenario = 'expired';
    await open(`${fixed}&stacks=open`);
    assert.match(await byId('health-coverage').textContent(), /^Based on 1,234 of 4,705 samples: .*--retention-raw/);
  });

  test('shows no panel without samples, and the message of an error', async () => {
    server.scenario = 'empty';
    await open();
    assert.equal(await byId('health').count(), 0);
    server.scenario = 'error';
    await open();
    assert.match(await byId('health').textContent(), /another reducer uses <b>this<\/b> data folder/);
    forgive(/status of 500/);
  });

  test('fits a phone', async () => {
    await page.setViewportSize({width: 390, height: 800});
    try {
      await open(`${fixed}&stacks=open`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
