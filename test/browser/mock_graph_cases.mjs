import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {click, hover, openBrowser, pointOf, readTooltip, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {fixed, frames, root, frame, percent, server, page, open, byId, hashParameter} from './mock_harness.mjs';

describe('flame graph', () => {
  test('a tooltip shows name, executable, kind, self and total in time, samples and percent', async () => {
    await open();
    const spin = frame('spin_sixty');
    assert.deepEqual(await hover(page, spin, root), {
      name: 'spin_sixty',
      executable: 'truth',
      kind: 'native',
      totalPercent: percent(1800, 4705),
      totalTime: '94.7 s',
      totalSamples: '1,800',
      selfPercent: percent(1800, 4705),
      selfTime: '94.7 s',
      selfSamples: '1,800',
      totalZoomed: null,
    });
    const kernel = await hover(page, frame('do_epoll_wait'), root);
    assert.equal(kernel.kind, 'kernel');
    assert.equal(kernel.executable, null);
    assert.equal((await hover(page, frame('libcrypto.so.3+0x1f84a0'), root)).kind, 'unknown');
    await page.mouse.move(5, 5);
    await byId('tooltip').waitFor({state: 'detached'});
  });

  test('names with markup stay text, on the graph, in tooltips, in the table and in lists', async () => {
    await open();
    assert.equal((await hover(page, frame(fixtures.hostile.image), root)).name, fixtures.hostile.image);
    const script = await hover(page, frame(fixtures.hostile.script), root);
    assert.equal(script.name, fixtures.hostile.script);
    assert.equal(script.executable, fixtures.hostile.command);
    assert.equal((await hover(page, frame(fixtures.hostile.quotes), root)).name, fixtures.hostile.quotes);
    assert.equal((await hover(page, frame(fixtures.hostile.control), root)).name, fixtures.controlShown);
    await click(page, frame(fixtures.hostile.image), root);
    assert.ok((await byId('breadcrumbs').textContent()).includes(fixtures.hostile.image));
    assert.ok((await byId('top').textContent()).includes(fixtures.hostile.script));
    await byId('open-process-filter').click();
    assert.ok((await page.getByRole('dialog').textContent()).includes(fixtures.hostile.command));
    assert.equal(await page.locator('img, #app script, svg[onload]').count(), 0);
  });

  test('a click zooms, the tooltip adds the share of the zoomed frame, breadcrumbs and Reset lead back', async () => {
    await open();
    const step = frame('step');
    await click(page, step, root);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(step.index));
    assert.match(await hashParameter('zoom'), /^[0-9a-f]{16}$/);
    const spin = await hover(page, frame('spin_thirty'), step);
    assert.equal(spin.totalPercent, percent(900, 4705));
    assert.equal(spin.totalZoomed, percent(900, 3000));
    assert.equal(
      await byId('breadcrumbs').textContent(),
      ['all', '_start', '__libc_start_main', 'main', 'run', 'step'].join(''),
    );
    await byId('breadcrumbs').getByRole('button', {name: 'main', exact: true}).click();
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('main', 'truth').index));
    await byId('reset-zoom').click();
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), '0');
    assert.equal(await hashParameter('zoom'), null);
    await page.goBack();
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('main', 'truth').index));
  });

  test('upside down, the root is at the bottom and each pixel still finds its frame', async () => {
    await open(`${fixed}&orientation=flame`);
    const rootPoint = await pointOf(page, root, root);
    const spinPoint = await pointOf(page, frame('spin_sixty'), root);
    assert.ok(rootPoint.y > spinPoint.y);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    await click(page, frame('spin_sixty'), root);
    assert.equal((await hover(page, frame('main', 'truth'), frame('spin_sixty'))).name, 'main');
  });

  test('search counts and colours the matches', async () => {
    await open();
    const pixel = async (f) => {
      const {x, y} = await pointOf(page, f, root);
      // Take a pixel outside the label: at the upper edge of the frame.
      const shot = await page.screenshot({clip: {x: Math.round(x), y: Math.round(y) - 8, width: 1, height: 1}});
      return shot.toString('base64');
    };
    const before = await pixel(frame('spin_thirty'));
    await page.keyboard.press('/');
    await page.keyboard.type('SPIN_t');
    await settled(page);
    assert.equal(await byId('search-result').textContent(), `2 frames, ${percent(1200, 4705)}`);
    assert.notEqual(await pixel(frame('spin_thirty')), before);
    assert.equal(await pixel(frame('spin_thirty')), await pixel(frame('spin_ten')));
    assert.notEqual(await pixel(frame('spin_thirty')), await pixel(frame('spin_sixty')));
    assert.equal(await hashParameter('search'), 'SPIN_t');
    await byId('search').fill('/(/');
    assert.match(await byId('search-result').textContent(), /not a regular expression/);
    await byId('search').press('Escape');
    assert.equal(await byId('search').inputValue(), '');
    assert.equal(await byId('search-result').textContent(), '');
  });

  test('the keyboard walks, zooms and leaves', async () => {
    await open();
    await byId('flame').focus();
    const shown = async () => (await readTooltip(page)).name;
    const press = async (key, name) => {
      await page.keyboard.press(key);
      await page.waitForFunction(
        (wanted) => document.querySelector('[data-testid="tooltip-name"]')?.textContent === wanted,
        name,
      );
      assert.equal(await shown(), name);
    };
    await press('ArrowDown', 'all');
    await press('ArrowDown', '_start');
    await press('ArrowDown', '__libc_start_main');
    await press('ArrowRight', 'Py_BytesMain');
    await press('ArrowLeft', '__libc_start_main');
    await press('ArrowUp', '_start');
    await press('ArrowDown', '__libc_start_main');
    await page.keyboard.press('Enter');
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('__libc_start_main').index));
    await page.keyboard.press('Escape');
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('_start', 'truth').index));
    await page.keyboard.press('Escape');
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), '0');
  });

  test('a link reproduces zoom, search, orientation and order', async () => {
    await open();
    await click(page, frame('step'), root);
    await byId('orientation-flame').click();
    await byId('search').fill('spin');
    await byId('sort-total').click();
    await settled(page);
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await settled(page);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('step').index));
    assert.equal(await byId('flame').getAttribute('data-orientation'), 'flame');
    assert.equal(await byId('search').inputValue(), 'spin');
    assert.equal(await page.locator('th.total').getAttribute('aria-sort'), 'descending');
  });

  test('short names leave out template arguments, are remembered, and searches use the full name', async () => {
    server.scenario = 'templates';
    await open(`${fixed}&panes=both`);
    const full = fixtures.templates.spin_sixty;
    const short = 'std::map<…>::emplace<…>(std::pair<…> const&)';
    const first = page.locator('.function-name').first();
    const step = frame('step');
    const picture = () => byId('flame').screenshot().then((shot) => shot.toString('base64'));
    assert.equal(await first.textContent(), full);
    const before = await picture();
    await byId('names-short').click();
    await settled(page);
    try {
      assert.equal(await hashParameter('names'), 'short');
      assert.equal(await first.textContent(), short);
      assert.equal(await byId('top-function').first().getAttribute('title'), full);
      assert.notEqual(await picture(), before);
      assert.equal((await hover(page, frame('spin_sixty'), root)).name, short);
      assert.equal(await byId('tooltip-full').textContent(), full);
      await click(page, step, root);
      const crumb = byId('breadcrumbs').getByRole('button').last();
      assert.equal(await crumb.textContent(), '<work::Step<…> as core::iter::Iterator>::next');
      assert.equal(await crumb.getAttribute('title'), fixtures.templates.step);
      await byId('search').fill('std::vector<char>');
      assert.equal(await byId('search-result').textContent(), `1 frame, ${percent(1800, 3000)}`);
      await open();
      assert.equal(await first.textContent(), short);
    } finally {
      await byId('names-full').click();
    }
    assert.equal(await hashParameter('names'), null);
    assert.equal(await first.textContent(), full);
    await open();
    assert.equal(await first.textContent(), full);
  });

  test('50,000 nodes draw within a frame', async () => {
    server.scenario = 'large';
    await page.setViewportSize({width: 1440, height: 1500});
    await open(`${fixed}&panes=flame`);
    const canvas = byId('flame');
    const times = [];
    for (const orientation of ['flame', 'icicle', 'flame', 'icicle', 'flame']) {
      await byId(`orientation-${orientation}`).click();
      await settled(page);
      times.push(Number(await canvas.getAttribute('data-draw-ms')));
    }
    await page.setViewportSize({width: 1440, height: 900});
    times.sort((a, b) => a - b);
    console.log(`# 50,000 nodes: drawn in ${times.join(', ')} ms`);
    assert.ok(times[2] < 16, `median of ${times} ms`);
  });

  test("the canvas has the device's resolution and follows the window", async () => {
    const sharp = await openBrowser({width: 1000, height: 700, deviceScaleFactor: 2});
    try {
      await sharp.page.goto(`${server.url}/#${fixed}&panes=flame`);
      await settled(sharp.page);
      const size = () => sharp.page.getByTestId('flame').evaluate((c) => ({width: c.width, shown: c.clientWidth}));
      const before = await size();
      assert.equal(before.width, 2 * before.shown);
      await sharp.page.setViewportSize({width: 700, height: 700});
      await settled(sharp.page);
      const after = await size();
      assert.ok(after.shown < 700 && after.shown > 600, `${after.shown} pixels in a window of 700`);
      assert.equal(after.width, 2 * after.shown);
      assert.deepEqual(sharp.complaints, []);
    } finally {
      await sharp.close();
    }
  });
});

describe('top functions', () => {
  test('sorts, filters, and a click marks the function in the graph', async () => {
    await open();
    const names = () => page.locator('.function-name').allTextContents();
    assert.deepEqual((await names()).slice(0, 3), ['spin_sixty', 'spin_thirty', '_PyEval_EvalFrameDefault']);
    await byId('sort-total').click();
    assert.deepEqual((await names()).slice(0, 2), ['__libc_start_main', '_start']);
    await byId('sort-total').click();
    assert.equal(await page.locator('th.total').getAttribute('aria-sort'), 'ascending');
    await byId('top-filter').fill('libz');
    assert.deepEqual((await names()).sort(), ['deflate', 'longest_match']);
    await byId('top-filter').fill('spin_ten');
    await page.locator('[data-testid="top-function"]').first().click();
    assert.equal(await byId('search').inputValue(), '"spin_ten"');
    assert.equal(await byId('search-result').textContent(), `1 frame, ${percent(300, 4705)}`);
  });

  test('counts a function that calls itself once, and follows the zoom', async () => {
    await open();
    await byId('top-filter').fill('"_PyEval_EvalFrameDefault"');
    const cells = page.locator('.top tbody td.amount');
    assert.match(await cells.nth(1).textContent(), new RegExp(`^${((940 / 4705) * 100).toFixed(1)}%`));
    await click(page, frame('_PyFunction_Vectorcall'), root);
    assert.match(await cells.nth(1).textContent(), /^100%/);
    assert.match(await cells.nth(0).textContent(), new RegExp(`^${((420 / 630) * 100).toFixed(1)}%`));
  });

  test('when the graph was cut, the table asks the server', async () => {
    server.scenario = 'truncated';
    await open();
    assert.ok(server.requests.some((url) => url.pathname === '/api/v1/top'));
    assert.match(await byId('truncated').textContent(), /12,345 smallest frames were left out/);
    assert.equal(await page.locator('.function-name').first().textContent(), 'spin_sixty');
  });
});
