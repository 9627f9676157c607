// The built page in chromium against a reducer with fixed answers. Usage: node mock_test.mjs DIST
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {after, afterEach, before, beforeEach, describe, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {click, hover, layOut, openBrowser, pointOf, readTooltip, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {MockServer} from './mock_server.mjs';

const dist = process.argv[2];
if (!dist) {
  console.error('usage: node mock_test.mjs DIST');
  process.exit(2);
}

const range = {from: fixtures.from, to: fixtures.to};
const fixed = `from=${range.from}&to=${range.to}`;
const frames = layOut(fixtures.flamegraph(range));
const root = frames[0];
const frame = (name, executable) => {
  const found = frames.find((f) => f.name === name && (executable === undefined || f.executable === executable));
  assert.ok(found, `the fixture has a frame ${name}`);
  return found;
};
const percent = (part, whole) => `${((part / whole) * 100).toFixed(2)}%`;

let server;
let browser;
let page;

before(async () => {
  server = await new MockServer(dist).listen();
  browser = await openBrowser();
  page = browser.page;
});
after(async () => {
  await browser.close();
  await server.close();
});
beforeEach(() => {
  server.scenario = 'normal';
  server.requests.length = 0;
  browser.complaints.length = 0;
});
// Whatever else a test asserts: no dialog opened, no script failed, nothing broke the content security policy.
afterEach(() => assert.deepEqual(browser.complaints, []));

async function open(hash = fixed) {
  await page.goto('about:blank');
  await page.mouse.move(0, 0);
  await page.goto(`${server.url}/${hash ? `#${hash}` : ''}`);
  await settled(page);
}

const byId = (id) => page.getByTestId(id);
const hashParameter = (name) => page.evaluate((key) => new URLSearchParams(location.hash.slice(1)).get(key), name);
const lastQuery = (verb) => server.requests.filter((url) => url.pathname.endsWith(`/${verb}`)).at(-1)?.searchParams.get('query');

describe('flame graph', () => {
  test('a tooltip tells name, executable, kind, self and total in time, samples and percent', async () => {
    await open();
    const spin = frame('spin_sixty');
    assert.deepEqual(await hover(page, spin, root), {
      name: 'spin_sixty', executable: 'truth', kind: 'native',
      totalPercent: percent(1800, 4705), totalTime: '94.7 s', totalSamples: '1,800',
      selfPercent: percent(1800, 4705), selfTime: '94.7 s', selfSamples: '1,800', totalZoomed: null,
    });
    const kernel = await hover(page, frame('do_epoll_wait'), root);
    assert.equal(kernel.kind, 'kernel');
    assert.equal(kernel.executable, null);
    assert.equal((await hover(page, frame('libcrypto.so.3+0x1f84a0'), root)).kind, 'unknown');
    await page.mouse.move(5, 5);
    await byId('tooltip').waitFor({state: 'detached'});
  });

  test('names that are markup stay text, on the graph, in tooltips, in the table and in lists', async () => {
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
    assert.equal(await byId('breadcrumbs').textContent(), ['all', '_start', '__libc_start_main', 'main', 'run', 'step'].join(''));
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

  test('turned upside down, the root is at the bottom and pixels still find their frames', async () => {
    await open(`${fixed}&orientation=flame`);
    const rootPoint = await pointOf(page, root, root);
    const spinPoint = await pointOf(page, frame('spin_sixty'), root);
    assert.ok(rootPoint.y > spinPoint.y);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    await click(page, frame('spin_sixty'), root);
    assert.equal((await hover(page, frame('main', 'truth'), frame('spin_sixty'))).name, 'main');
  });

  test('search counts and colours what matches', async () => {
    await open();
    const pixel = async (f) => {
      const {x, y} = await pointOf(page, f, root);
      // Beside the label: the upper edge of the frame.
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
      await page.waitForFunction((wanted) => document.querySelector('[data-testid="tooltip-name"]')?.textContent === wanted, name);
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

  test('50,000 nodes draw within a frame', async () => {
    server.scenario = 'large';
    await open();
    const canvas = byId('flame');
    const times = [];
    for (const orientation of ['flame', 'icicle', 'flame', 'icicle', 'flame']) {
      await byId(`orientation-${orientation}`).click();
      await settled(page);
      times.push(Number(await canvas.getAttribute('data-draw-ms')));
    }
    times.sort((a, b) => a - b);
    console.log(`# 50,000 nodes: drawn in ${times.join(', ')} ms`);
    assert.ok(times[2] < 16, `median of ${times} ms`);
  });

  test('the canvas has the device\'s resolution and follows the window', async () => {
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
      assert.equal(after.shown, before.shown - 300 + (await sharp.page.evaluate(() => 16 * Number(innerWidth <= 720) + 8 * Number(innerWidth <= 720))));
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
    assert.match(await byId('truncated').textContent(), /12,345 smallest nodes were cut/);
    assert.equal(await page.locator('.function-name').first().textContent(), 'spin_sixty');
  });
});

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

  test('a selector that does not parse is explained and not sent', async () => {
    await open();
    const asked = server.requests.length;
    await byId('selector').fill('{process_pid}');
    await byId('selector').press('Enter');
    assert.match(await byId('selector-error').textContent(), /character 13: one of = != =~ !~/);
    assert.equal(server.requests.length, asked);
    await byId('selector').press('Escape');
    assert.equal(await byId('selector').inputValue(), '');
  });

  test('a selector that the server refuses shows its words', async () => {
    await open();
    await byId('selector').fill('{pid="1"}');
    await byId('selector').press('Enter');
    await settled(page);
    assert.equal(await byId('selector-error').textContent(), 'unknown label pid; did you mean process_pid?');
    assert.match(await byId('error').first().textContent(), /did you mean process_pid/);
    // The browser reports every answer of 400 on the console.
    browser.complaints.splice(0, Infinity, ...browser.complaints.filter((text) => !/status of 400/.test(text)));
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
    assert.ok(server.requests.some((url) => url.pathname.endsWith('/flamegraph') && url.searchParams.get('from') === '-1h'));
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

  test('live: refreshes by itself and keeps the zoom', async () => {
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

// The instrument that checks a running reducer, against this one: it must agree, and must notice when page and API do not.
describe('live.mjs', () => {
  const script = fileURLToPath(new URL('live.mjs', import.meta.url));
  const run = (...more) => new Promise((resolve) => {
    const options = ['--url', server.url, '--executable', 'truth', '--from', String(range.from), '--to', String(range.to), ...more];
    execFile(process.execPath, [script, ...options], (error, stdout, stderr) => resolve({code: error?.code ?? 0, stdout, stderr}));
  });

  test('agrees with a truthful server', async () => {
    const {code, stdout, stderr} = await run('--functions', 'spin_sixty,spin_thirty,spin_ten');
    assert.equal(stderr, '');
    assert.match(stdout, /spin_sixty: 60\.00% of 3,000 samples/);
    assert.match(stdout, /page and API agree/);
    assert.equal(code, 0);
  });

  test('notices three samples of 3,000 in the wrong function', async () => {
    server.scenario = 'two_faced';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: pixels of spin_sixty: total: the page says 59\.90%, the API 60\.0000%/);
    assert.equal(code, 1);
  });

  test('notices a function that is not there', async () => {
    const {code, stderr} = await run('--functions', 'spin_none');
    assert.match(stderr, /mismatch: the API's flame graph has no frame spin_none/);
    assert.equal(code, 1);
  });
});

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

  test('empty, with advice that fits', async () => {
    server.scenario = 'empty';
    await open();
    assert.match(await byId('empty').first().textContent(), /No samples here.*Nothing was recorded/);
    await open(`${fixed}&query=${encodeURIComponent('{process_pid="1"}')}`);
    assert.match(await byId('empty').first().textContent(), /passes the filters/);
    server.scenario = 'normal';
    await byId('empty').first().getByRole('button', {name: 'Clear the filters'}).click();
    await settled(page);
    assert.equal(await byId('empty').count(), 0);
  });

  test('an error is shown in the server\'s words, as text, and can be tried again', async () => {
    server.scenario = 'error';
    await open();
    assert.match(await byId('error').first().textContent(), /another reducer uses <b>this<\/b> data folder/);
    server.scenario = 'normal';
    await byId('error').first().getByRole('button', {name: 'Try again'}).click();
    await settled(page);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    browser.complaints.splice(0, Infinity, ...browser.complaints.filter((text) => !/status of 500/.test(text)));
  });

  test('a failed refresh keeps the data and says so', async () => {
    await open();
    server.scenario = 'error';
    await byId('refresh').click();
    await settled(page);
    assert.match(await byId('stale').textContent(), /data folder\. What is shown was loaded at \d\d:\d\d:\d\d\./);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    browser.complaints.splice(0, Infinity, ...browser.complaints.filter((text) => !/status of 500/.test(text)));
  });

  test('an answer that contradicts itself is refused', async () => {
    server.scenario = 'lying';
    await open();
    assert.match(await byId('error').first().textContent(), /does not hold together: node 1 has a name that is not listed/);
  });

  test('status: the law, losses by reason, stack health', async () => {
    await open();
    assert.match(await byId('open-status').textContent(), /1 collector.*5,230 captured · 5,222 stored · 4 lost/);
    await byId('open-status').click();
    for (const [name, value] of [['captured', '5,230'], ['stored', '5,222'], ['lost', '4'], ['on-the-way', '4']]) {
      assert.match(await byId(`status-${name}`).textContent(), new RegExp(`^${value}`));
    }
    const panel = await page.getByRole('dialog', {name: 'Status'}).textContent();
    assert.match(panel, /lost: ring full3 samples/);
    assert.match(panel, /complete stacks95\.9%/);
    await page.keyboard.press('Escape');
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  test('the theme follows the system until chosen, and the choice is kept', async () => {
    await open();
    const expectTheme = (wanted) => page.waitForFunction((name) => document.documentElement.dataset.theme === name, wanted);
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
