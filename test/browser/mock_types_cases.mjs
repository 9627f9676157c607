import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {hover, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {
  browser,
  byId,
  fixed,
  forgive,
  frame,
  hashParameter,
  lastParameter,
  open,
  page,
  range,
  root,
  server,
} from './mock_harness.mjs';

const key = 'alloc_space:bytes';

async function choose(name) {
  await byId('open-type').click();
  await byId('type-option').filter({hasText: name}).click();
  await settled(page);
}

describe('types of samples', () => {
  test('one type: offers no choice, and shows CPU time as before', async () => {
    await open();
    assert.equal(await byId('type').count(), 0);
    assert.equal(await byId('timeline-title').textContent(), 'CPU use in cores');
    assert.match(await byId('totals').textContent(), /cores on average, 4 min 8 s of CPU time, 4,705 samples$/);
    await hover(page, frame('spin_sixty'), root);
    assert.equal(await byId('tooltip-measure').textContent(), 'CPU time');
    assert.equal(lastParameter('flamegraph', 'type'), null);
    assert.equal(lastParameter('types', 'from'), String(range.from));
  });

  test('several types: offers exactly these, requests the chosen one, and keeps it in the address', async () => {
    server.types = fixtures.types.two;
    await open();
    await byId('open-type').click();
    assert.deepEqual(await byId('type-option').allTextContents(), ['alloc_spacebytes', 'CPU timenanoseconds']);
    await page.keyboard.press('Escape');
    await choose('alloc_space');
    assert.equal(await hashParameter('type'), key);
    for (const verb of ['flamegraph', 'timeline', 'series', 'stack-health', 'symbols', 'rollouts']) {
      assert.equal(lastParameter(verb, 'type'), key, verb);
    }
    assert.equal(lastParameter('types', 'type'), null);
    await page.goBack();
    await settled(page);
    assert.equal(await byId('timeline-title').textContent(), 'CPU use in cores');
    await page.goForward();
    await settled(page);
    await choose('CPU time');
    assert.equal(await hashParameter('type'), null, 'the default is not written');
  });

  test('every number has the unit of the type', async () => {
    server.types = fixtures.types.two;
    await open(`${fixed}&type=${key}`);
    const mib = (samples) => `${((samples * fixtures.sampleBytes) / 2 ** 20).toFixed(samples > 2559 ? 1 : 2)} MiB`;
    assert.equal(await byId('timeline-title').textContent(), 'alloc_space in bytes per second');
    assert.equal(await page.getByRole('region', {name: 'alloc_space over time'}).count(), 1);
    assert.match(await byId('timeline').getAttribute('aria-label'), /^alloc_space from .*, at most [\d.]+ KiB\/s$/);
    const total = `KiB/s on average, ${mib(4705)} of alloc_space, 4,705 samples`;
    assert.ok((await byId('totals').textContent()).endsWith(total), total);
    const plot = await page.locator('.u-over').boundingBox();
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 20);
    assert.match(await byId('timeline-readout').textContent(), /: [\d.]+ KiB\/s, \d+ samples$/);

    const tooltip = await hover(page, frame('spin_sixty'), root);
    assert.equal(await byId('tooltip-measure').textContent(), 'alloc_space');
    assert.equal(tooltip.totalTime, mib(1800));
    assert.equal(tooltip.totalSamples, '1,800');
    const first = page.getByTestId('top').locator('tbody tr').first();
    assert.equal(await first.locator('.amount-time').first().textContent(), mib(1800));
    await byId('open-process-filter').click();
    assert.match(await page.locator('.option-weight').first().textContent(), /MiB$/);
    await page.keyboard.press('Escape');
    assert.equal(await page.getByText(/CPU time|CPU use|cores/).count(), 0);

    await byId('top-lines').first().click();
    await settled(page);
    assert.equal(lastParameter('lines', 'type'), key);
    assert.match(await byId('lines-sums').textContent(), /^7\.03 MiB · .* · 7\.03 MiB self$/);
    assert.match(await byId('source-hot').first().locator('th').getAttribute('title'), /iB in the line itself .* [KM]iB with/);
    await byId('line-open').first().click();
    assert.match(await byId('address').first().locator('td').last().getAttribute('title'), /iB$/);
  });

  test('a range without CPU time shows the type that it has', async () => {
    server.types = fixtures.types.other;
    await open();
    await page.waitForFunction(() => document.querySelector('[data-testid="totals"]')?.textContent.includes('alloc_space'));
    assert.equal(lastParameter('flamegraph', 'type'), key);
    assert.equal(await hashParameter('type'), null);
    assert.equal(await byId('type').count(), 0, 'one type: nothing to choose');
    await byId('top-lines').first().click();
    await settled(page);
    assert.match(await byId('lines-sums').textContent(), /MiB self$/);
  });

  test('reports a chosen type that the range does not have, and the user can clear it', async () => {
    await open(`${fixed}&type=nonsense&query=${encodeURIComponent('{process_pid="1"}')}`);
    assert.match(await byId('error').first().textContent(), /no samples of type 'nonsense'; the existing types are: cpu/);
    assert.equal(await byId('selector-error').textContent(), '', 'the selector is not to blame');
    assert.match(await byId('type').textContent(), /nonsense/);
    await page.getByLabel('Clear the type').click();
    await settled(page);
    assert.equal(await byId('type').count(), 0);
    assert.equal(await byId('error').count(), 0);
    forgive(/status of 400/);
  });

  test('hostile names and units are text, and cut', async () => {
    server.types = fixtures.types.hostile;
    await open();
    await byId('open-type').click();
    const [name] = await byId('type-option').allTextContents();
    assert.ok(name.startsWith('<img src=x onerror="alert(1)">'), name);
    assert.ok(Array.from(name).length <= 64, name);
    await byId('type-option').first().click();
    await settled(page);
    assert.match(await byId('totals').textContent(), /k bell\\u0007escape\\u001b\[31m.*…\/s on average/);
    assert.ok((await byId('timeline-title').textContent()).length < 120);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1440);
    await hover(page, frame('spin_sixty'), root);
    assert.match(await byId('tooltip-total-time').textContent(), /^7\.37M bell\\u0007/);
    assert.equal(await page.locator('img').count(), 0);
    assert.deepEqual(browser.complaints, []);
  });

  test('the choice fits a phone', async () => {
    server.types = fixtures.types.hostile;
    await page.setViewportSize({width: 390, height: 800});
    try {
      await open(`${fixed}&type=${encodeURIComponent(`${fixtures.hostileType.name}:${fixtures.hostileType.unit}`)}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
      await byId('open-type').click();
      const box = await page.getByRole('dialog').boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
