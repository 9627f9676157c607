import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {click, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {range, root, frame, server, page, open, byId, hashParameter, lastQuery, forgive} from './mock_harness.mjs';

describe('filters', () => {
  test('by process: name, then pid, and cleared', async () => {
    await open();
    await byId('open-process-filter').click();
    await page.keyboard.type('pyth');
    await page.keyboard.press('Enter');
    await settled(page);
    assert.equal(lastQuery('flamegraph'), '{process_executable_name="python3.11"}');
    assert.equal(lastQuery('timeline'), '{process_executable_name="python3.11"}');
    assert.equal(await byId('selector').inputValue(), '{process_executable_name="python3.11"}');
    assert.match(await byId('totals').textContent(), /940 samples/);
    await byId('open-process-filter').click();
    await page.getByRole('dialog').getByText('pid 977').click();
    await settled(page);
    assert.equal(lastQuery('flamegraph'), '{process_executable_name="python3.11", process_pid="977"}');
    await page.getByLabel('Clear the process filter').click();
    await settled(page);
    assert.equal(lastQuery('flamegraph'), null);
    assert.match(await byId('totals').textContent(), /4,705 samples/);
  });

  test('a hostile command becomes a quoted value, and threads combine with the process', async () => {
    await open();
    await byId('selector').fill(`{process_command=${JSON.stringify(fixtures.hostile.command)}}`);
    await byId('selector').press('Enter');
    await settled(page);
    assert.match(await byId('totals').textContent(), /80 samples/);
    await byId('open-thread-filter').click();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await settled(page);
    assert.match(lastQuery('flamegraph'), /^\{process_command="\\"><svg onload=alert\(3\)>", thread_name="/);
  });

  test('explains a selector that does not parse, and does not send it', async () => {
    await open();
    const asked = server.requests.length;
    await byId('selector').fill('{process_pid}');
    await byId('selector').press('Enter');
    assert.match(await byId('selector-error').textContent(), /character 13: one of = != =~ !~/);
    assert.equal(server.requests.length, asked);
    await byId('selector').press('Escape');
    assert.equal(await byId('selector').inputValue(), '');
  });

  test("shows the server's message when the server refuses a selector", async () => {
    await open();
    await byId('selector').fill('{pid="1"}');
    await byId('selector').press('Enter');
    await settled(page);
    assert.equal(await byId('selector-error').textContent(), 'unknown label pid; did you mean process_pid?');
    assert.match(await byId('error').first().textContent(), /did you mean process_pid/);
    forgive(/status of 400/);
  });
});

describe('time', () => {
  test('presets, an absolute range, and a drag on the timeline', async () => {
    await open('');
    assert.equal(await byId('range-label').textContent(), 'Last 15 minutes');
    assert.equal(await byId('live').getAttribute('aria-pressed'), 'true');
    await byId('open-time-range').click();
    await page.getByRole('button', {name: 'Last hour'}).click();
    await settled(page);
    assert.ok(
      server.requests.some((url) => url.pathname.endsWith('/flamegraph') && url.searchParams.get('from') === '-1h'),
    );
    await byId('open-time-range').click();
    await byId('range-from').fill('2025-11-21T07:30');
    await byId('range-to').fill('2025-11-21T07:29');
    await byId('range-apply').click();
    assert.match(await page.getByRole('alert').filter({hasText: 'must come before'}).textContent(), /must come before/);
    await byId('range-to').fill('2025-11-21T07:40');
    await byId('range-apply').click();
    await settled(page);
    assert.equal(await hashParameter('from'), String(Date.UTC(2025, 10, 21, 7, 30)));
    assert.equal(await hashParameter('to'), String(Date.UTC(2025, 10, 21, 7, 40)));
    assert.equal(await byId('live').getAttribute('aria-pressed'), 'false');
    assert.equal(await byId('range-label').textContent(), '2025-11-21 07:30:00 – 07:40:00');

    const plot = await page.locator('.u-over').boundingBox();
    await page.mouse.move(plot.x + plot.width * 0.25, plot.y + 20);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width * 0.4, plot.y + 25, {steps: 5});
    await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 25, {steps: 5});
    await page.mouse.up();
    await settled(page);
    const from = Number(await hashParameter('from')) - Date.UTC(2025, 10, 21, 7, 30);
    const to = Number(await hashParameter('to')) - Date.UTC(2025, 10, 21, 7, 30);
    assert.ok(Math.abs(from - 150_000) < 2_000, `from ${from}`);
    assert.ok(Math.abs(to - 300_000) < 2_000, `to ${to}`);
  });

  test('the timeline reads out its buckets in cores', async () => {
    await open();
    const plot = await page.locator('.u-over').boundingBox();
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 20);
    const answer = fixtures.timeline(range, 180);
    const bucket = 90;
    const cores = answer.cpu_ns[bucket] / (answer.step_ms * 1e6);
    const text = await byId('timeline-readout').textContent();
    assert.match(text, new RegExp(`: ${cores.toFixed(2)} cores, ${answer.count[bucket]} samples$`));
  });

  test('rollouts are marked on the timeline, and a click shows both half hours', async () => {
    await open();
    const marks = page.getByTestId('rollout');
    assert.equal(await marks.count(), 2);
    assert.match(await marks.nth(0).getAttribute('title'), /shop\/pay: version 1\.9 → 4\.0\n.*shop\/cart: version 1\.9 → 3\.0$/);
    assert.match(await marks.nth(1).getAttribute('aria-label'), /^Rollout: .*deployment shop\/web: version 1\.9 → 2\.0$/);
    const plot = await page.locator('.u-over').boundingBox();
    const mark = await marks.nth(1).boundingBox();
    assert.ok(Math.abs(mark.x + mark.width / 2 - (plot.x + plot.width / 2)) < 2, `${mark.x} in ${plot.x} + ${plot.width}`);
    const at = fixtures.rollouts(range).rollouts[1].at;
    await page.mouse.click(mark.x + mark.width / 2, mark.y + 4);
    await settled(page);
    const from = Number(await hashParameter('from')), to = Number(await hashParameter('to'));
    assert.ok(Math.abs(from - (at - 1_800_000)) < 2_000, `from ${from}`);
    assert.ok(Math.abs(to - (at + 1_800_000)) < 2_000, `to ${to}`);
    // Below a mark, the timeline still reacts to the pointer.
    await open();
    await page.mouse.move(mark.x + mark.width / 2, mark.y + 60);
    await byId('timeline-readout').waitFor();
  });

  test('live: refreshes automatically and keeps the zoom', async () => {
    await page.clock.install();
    try {
      await open('');
      await click(page, frame('step'), root);
      const asked = server.requests.length;
      await page.clock.runFor(5100);
      await settled(page);
      assert.ok(server.requests.length > asked, 'asked again after 5 s');
      assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('step').index));
      await byId('live').click();
      const still = server.requests.length;
      await page.clock.runFor(20_000);
      assert.equal(server.requests.length, still, 'not live, not asking');
      assert.equal(await hashParameter('live'), '0');
    } finally {
      await page.clock.resume();
    }
  });
});
