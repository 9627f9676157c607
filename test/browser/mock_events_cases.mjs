import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {hover, settled} from './browser.mjs';
import {longName} from './events_fixtures.mjs';
import * as fixtures from './fixtures.mjs';
import {
  browser,
  byId,
  fixed,
  forgive,
  frame,
  hashParameter,
  lastParameter,
  lastQuery,
  open,
  page,
  range,
  root,
  server,
} from './mock_harness.mjs';

const opened = `${fixed}&processes=open`;
const marks = () => byId('event-mark');
const kindsOf = (mark) => mark.locator('.event-glyph').evaluateAll((glyphs) => glyphs.map((g) => g.dataset.kind));
const asked = (verb) => server.requests.filter((url) => url.pathname.endsWith(`/${verb}`)).length;
const isSquashed = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

async function onPhone(run) {
  await page.setViewportSize({width: 390, height: 800});
  try {
    await run();
  } finally {
    await page.setViewportSize({width: 1440, height: 900});
  }
}

describe('marks of process events', () => {
  test('are at their times, below the plot, and those that would overlap share a mark', async () => {
    await open();
    const names = await marks().evaluateAll((all) => all.map((mark) => mark.getAttribute('aria-label')));
    assert.deepEqual(
      names.map((name) => name.replace(/, 2025-.*/, '')),
      ['1 crash', '1 restart', '3 crashes, 1 restart', '1 OOM kill', '1 OOM kill, 1 restart'],
    );
    assert.deepEqual(await kindsOf(marks().nth(2)), ['crash', 'restart'], 'worst first');
    assert.deepEqual(await byId('event-mark').locator('.event-number').allTextContents(), ['', '', '4', '', '']);
    const plot = await page.locator('.u-over').boundingBox();
    for (const [index, share] of [[0, 0.1], [1, 0.2], [3, 0.7]]) {
      const glyph = await marks().nth(index).locator('.event-glyph').boundingBox();
      const middle = glyph.x + glyph.width / 2;
      assert.ok(Math.abs(middle - (plot.x + share * plot.width)) < 2, `mark ${index}: ${middle}`);
      assert.ok(glyph.y >= plot.y + plot.height, 'below the plot');
      assert.ok(glyph.y + glyph.height <= plot.y + plot.height + 15, 'above the labels of the axis');
    }
  });

  test('the tooltip and the popover have the details, and a button selects the program', async () => {
    await open();
    const title = await marks().nth(2).getAttribute('title');
    assert.match(title, /^2025-11-21 07:32:40 truth: crash \(SIGABRT\) · host node-1 · pid 4400\n/);
    assert.match(title, /nginx: 2 crashes \(SIGSEGV\) · pod shop\/web-6d5f9c8b7-abcde · host node-1 · pid 4401\n/);
    assert.match(title, /nginx: restart after SIGSEGV/);
    await marks().nth(2).click();
    const dialog = page.getByRole('dialog');
    assert.equal(await dialog.getByRole('heading').textContent(), '3 crashes, 1 restart');
    assert.match(await byId('event-mark-row').first().textContent(), /truth.*crash \(SIGABRT\).*host node-1 · pid 4400/);
    await page.keyboard.press('Escape');
    assert.equal(await dialog.count(), 0);
    await marks().nth(2).click();
    await byId('event-mark-select').nth(1).click();
    await settled(page);
    assert.equal(await dialog.count(), 0);
    for (const verb of ['flamegraph', 'marks', 'programs']) {
      assert.equal(lastQuery(verb), '{process_executable_name="nginx"}', verb);
    }
    assert.equal(lastParameter('marks', 'from'), String(range.from));
    assert.equal(lastParameter('marks', 'type'), null, 'events have no type of samples');
    assert.equal(await marks().count(), 2);
    await marks().first().click();
    await byId('event-mark-processes').click();
    assert.equal(await hashParameter('processes'), 'open');
  });

  test('the keyboard reaches them: one stop for Tab, arrow keys between them, Enter opens', async () => {
    await open();
    assert.deepEqual(
      await marks().evaluateAll((all) => all.map((mark) => mark.tabIndex)),
      [0, -1, -1, -1, -1],
    );
    const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    await marks().first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.match(await focused(), /^3 crashes, 1 restart, /);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    assert.match(await focused(), /^3 crashes, 1 restart, /, 'the focus returns to the mark');
    await page.keyboard.press('End');
    assert.match(await focused(), /^1 OOM kill, 1 restart, /);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Home');
    assert.match(await focused(), /^1 crash, /);
  });

  test('an open popover stays open while the page refreshes, and marks follow the refresh', async () => {
    await page.clock.install();
    try {
      await open('');
      await marks().nth(2).click();
      const before = asked('marks');
      await page.clock.runFor(5100);
      await settled(page);
      assert.equal(asked('marks'), before + 1);
      assert.equal(await page.getByRole('dialog').count(), 1);
      // While the card is closed, its line is requested once a minute.
      assert.equal(asked('programs'), 1);
      await page.clock.fastForward(60_000);
      await settled(page);
      assert.equal(asked('programs'), 2);
    } finally {
      await page.clock.resume();
    }
  });

  test('a thousand marks do not overlap, and none leaves the chart', async () => {
    server.scenario = 'events_many';
    const check = async (width) => {
      await open();
      const boxes = await marks().evaluateAll((all) => all.map((m) => m.getBoundingClientRect()).map(({left, right}) => ({left, right})));
      assert.ok(boxes.length > 3, `${boxes.length} marks`);
      boxes.forEach(({right}, i) => {
        const next = boxes[i + 1];
        assert.ok(right <= (next ? next.left : width - 12), `mark ${i}: ${right}, next ${next?.left}`);
      });
      await marks().last().click();
      const panel = await page.getByRole('dialog').boundingBox();
      assert.ok(panel.x >= 0 && panel.x + panel.width <= width, JSON.stringify(panel));
      await marks().first().click();
      const first = await page.getByRole('dialog').boundingBox();
      assert.ok(first.x >= 0 && first.x + first.width <= width, JSON.stringify(first));
      assert.equal(await isSquashed(), false);
    };
    await check(1440);
    assert.match(await byId('processes-line').textContent(), /at least 501 crashes, 499 OOM kills, 500 restarts$/);
    await onPhone(() => check(390));
  });

  test('shapes and colours differ, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({colorScheme});
      await open();
      const looks = await page.locator('.event-marks .event-glyph').evaluateAll((glyphs) =>
        glyphs.map((g) => [g.dataset.kind, getComputedStyle(g).color, g.querySelector('path').getAttribute('d')]),
      );
      const [kinds, colors, shapes] = [0, 1, 2].map((part) => new Set(looks.map((look) => look[part])));
      assert.deepEqual([kinds.size, colors.size, shapes.size], [3, 3, 3], colorScheme);
    }
    await page.emulateMedia({colorScheme: 'light'});
  });
});

describe('processes', () => {
  test('one line; after a click that the address remembers, the programs with their numbers', async () => {
    await open();
    const line = '2,187 short-lived processes · 111 failed · 4 crashes, 2 OOM kills, 3 restarts';
    assert.equal(await byId('processes-line').textContent(), line);
    assert.equal(asked('events'), 0, 'a closed card requests no list');
    assert.equal(lastParameter('programs', 'limit'), '1');
    await byId('processes-details').click();
    await settled(page);
    assert.equal(await hashParameter('processes'), 'open');
    const rows = byId('program');
    assert.equal(await rows.count(), 6);
    assert.match(await rows.first().textContent(), /^git\/usr\/bin\/git1,20012 failed121\.0%1\.8%9\.00 s18\.0 MiB$/);
    assert.match(await rows.nth(1).textContent(), /^cc1pluspod ci\/build-42 · .*340–52\.8%4 min 24 s812 MiB$/);
    assert.match(await byId('programs-others').textContent(), /^All other programs5002 failed2/);
    const foot = 'The 6 programs with the most processes · 2,187 processes that ran for less than 10 s used 4 min 38 s of CPU time';
    assert.equal(await byId('programs-foot').textContent(), foot);
    await byId('processes-details').click();
    assert.equal(await hashParameter('processes'), null);
  });

  test('sorts by each column, and the address has the order', async () => {
    await open(opened);
    const first = () => byId('program').first().locator('.function-name').textContent();
    const sorted = async (column, wanted, order) => {
      await byId(`processes-sort-${column}`).click();
      await settled(page);
      assert.equal(await first(), wanted, `${column} ${order}`);
      assert.equal(await page.locator(`.programs th.${column}`).getAttribute('aria-sort'), order);
    };
    await sorted('failed', 'python3.11', 'descending');
    await sorted('memory', 'cc1plus', 'descending');
    await sorted('cpu', 'cc1plus', 'descending');
    assert.equal(lastParameter('programs', 'sort'), 'cpu');
    await sorted('cpu', 'kworker/u8:3', 'ascending');
    assert.deepEqual([await hashParameter('processes_sort'), await hashParameter('processes_order')], ['cpu', 'asc']);
    await sorted('name', fixtures.hostile.image, 'ascending');
    await sorted('processes', 'git', 'descending');
    assert.equal(lastParameter('programs', 'sort'), 'processes');
  });

  test('a program selects itself; other filters stay', async () => {
    await open(`${opened}&query=${encodeURIComponent('{process_pid="1203", thread_name="x"}')}`);
    assert.equal(lastQuery('programs'), '{process_pid="1203"}', 'events have no threads');
    assert.match(await byId('processes-threads').textContent(), /^Filters of threads do not apply here/);
    await open(opened);
    await byId('program-choose').nth(5).click();
    await settled(page);
    assert.equal(lastQuery('events'), '{process_command="kworker/u8:3"}');
  });

  test('notable endings, newest first, page after page, and a refresh keeps the pages', async () => {
    await open(opened);
    const endings = byId('ending');
    assert.equal(await endings.count(), 50);
    assert.equal(lastParameter('events', 'kind'), 'crash,oom,failed');
    const texts = await endings.allTextContents();
    assert.match(texts[0], /^2025-11-21 07:41:31nginxkilled by SIGSEGV, core dumpedunit nginx\.service · host node-1 · pid 9000 · ran 1\.50 s · 300 ms of CPU time · 32\.0 MiB$/);
    assert.match(texts[1], /python3\.11killed by the OOM killercontainer web/);
    assert.match(texts[2], /git12 processes, each exit code 128host node-1/);
    assert.match(texts[5], /name not knownended$/);
    assert.deepEqual(await kindsOf(endings.first()), ['crash']);
    assert.deepEqual(await kindsOf(endings.nth(1)), ['oom']);
    await byId('endings-more').click();
    await settled(page);
    assert.equal(lastParameter('events', 'cursor'), '50');
    assert.equal(await endings.count(), 100);
    await byId('refresh').click();
    await settled(page);
    assert.equal(await endings.count(), 100);
    assert.equal(lastParameter('events', 'limit'), '100');
    await byId('endings-more').click();
    await settled(page);
    assert.equal(await endings.count(), 120);
    assert.equal(await byId('endings-more').count(), 0, 'this was the last page');
    await byId('ending-choose').first().click();
    await settled(page);
    assert.equal(lastQuery('events'), '{process_executable_name="nginx"}');
    assert.equal(lastParameter('events', 'limit'), '50', 'another list begins with one page');
    assert.equal(await endings.count(), 1);
  });

  test('a failed page keeps the list and says why', async () => {
    await open(opened);
    server.scenario = 'events_error';
    await byId('endings-more').click();
    await settled(page);
    assert.equal(await byId('ending').count(), 50);
    assert.match(await byId('endings-error').textContent(), /took <b>longer<\/b> than 30 s \(The data shown is older\.\)$/);
    server.scenario = 'normal';
    await byId('endings-more').click();
    await settled(page);
    assert.equal(await byId('ending').count(), 100);
    assert.equal(await byId('endings-error').count(), 0);
    forgive(/status of 500/);
  });

  test('empty, with advice that fits the case', async () => {
    server.scenario = 'events_none';
    await open(opened);
    assert.equal(await marks().count(), 0);
    assert.equal(await byId('processes-line').textContent(), 'no short-lived process ended in this time range');
    assert.match(await byId('processes-empty').textContent(), /ended in this time range\. Select a longer range\.$/);
    assert.match(await byId('endings-empty').textContent(), /^No process crashed, was killed or failed/);
    await open(`${opened}&query=${encodeURIComponent('{process_pid="1"}')}`);
    assert.match(await byId('processes-empty').textContent(), /Clear the filters, or select a longer range\.$/);
    server.scenario = 'events_never';
    await open(opened);
    assert.match(await byId('processes-empty').textContent(), /^No collector has sent process events yet\./);
  });

  test('a reducer of an earlier release: says so, hides the rest, and does not ask every 5 s', async () => {
    server.scenario = 'events_missing';
    await page.clock.install();
    try {
      await open('processes=open');
      assert.equal(await byId('processes-line').textContent(), 'This reducer is older and has no process events.');
      assert.equal(await byId('processes-details').count(), 0);
      assert.equal(await byId('processes-body').count(), 0);
      assert.equal(await marks().count(), 0);
      const before = asked('marks');
      await page.clock.runFor(5100);
      await settled(page);
      await page.clock.runFor(5100);
      await settled(page);
      assert.equal(asked('marks'), before);
      assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
      // It was updated.
      server.scenario = 'normal';
      await page.clock.fastForward(60_000);
      await settled(page);
      assert.ok((await marks().count()) > 0);
      await byId('open-status').click();
      assert.equal(await byId('status-events-captured').count(), 1);
    } finally {
      await page.clock.resume();
    }
    forgive(/status of 404/);
  });

  test('an error is shown as text in the card only', async () => {
    server.scenario = 'events_error';
    await open(opened);
    assert.equal(await byId('processes-line').textContent(), 'the query took <b>longer</b> than 30 s');
    assert.equal(await byId('error').count(), 0);
    assert.equal((await hover(page, frame('spin_sixty'), root)).name, 'spin_sixty');
    forgive(/status of 500/);
  });

  test('a failed refresh keeps the data and says so', async () => {
    await open(opened);
    server.scenario = 'events_error';
    await byId('refresh').click();
    await settled(page);
    assert.match(await byId('processes-stale').textContent(), /than 30 s \(The data shown is older\.\)$/);
    assert.equal(await byId('program').count(), 6);
    assert.equal(await marks().count(), 5);
    forgive(/status of 500/);
  });

  test('slow answers do not delay the flame graph', async () => {
    server.scenario = 'events_slow';
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${opened}`);
    await page.waitForSelector('[data-testid="main"][data-loading="false"]');
    await page.waitForSelector('[data-testid="flame"][data-busy="false"]');
    assert.equal(await byId('processes').getAttribute('data-loading'), 'true');
    assert.equal(await byId('processes-line').textContent(), 'Loading…');
    server.scenario = 'normal';
    server.answerWaiting();
    await settled(page);
    assert.equal(await marks().count(), 5);
    assert.equal(await byId('program').count(), 6);
  });

  test('hostile names are text, and long names are cut but complete in the title', async () => {
    await open(opened);
    const rows = byId('program');
    const hostile = rows.filter({hasText: fixtures.hostile.image});
    assert.ok((await hostile.textContent()).includes(fixtures.controlShown));
    const long = rows.filter({hasText: 'very-long-name'}).locator('.function-name');
    assert.ok(await long.evaluate((name) => name.scrollWidth > name.clientWidth), 'it is cut');
    const title = await rows.filter({hasText: 'very-long-name'}).getByTestId('program-choose').getAttribute('title');
    assert.ok(title.startsWith(`Show only ${longName}\n`));
    assert.ok((await byId('ending').nth(3).textContent()).includes('</script><script>alert(2)</script>'));
    assert.equal(await byId('ending-choose').nth(4).getAttribute('title'), `Show only ${longName}\n/usr/bin/${longName}`);
    await marks().last().click();
    const panel = await page.getByRole('dialog').textContent();
    assert.ok(panel.includes(fixtures.hostile.image) && panel.includes(fixtures.hostile.script), panel);
    await byId('event-mark-select').first().click();
    await settled(page);
    assert.equal(await hashParameter('query'), '{process_executable_name="<img src=x onerror=\\"alert(1)\\">"}');
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await isSquashed(), false);
    assert.deepEqual(browser.complaints, []);
  });

  test('fits a phone', () =>
    onPhone(async () => {
      await open(opened);
      assert.equal(await isSquashed(), false);
      assert.match(await byId('program').first().innerText(), /^git\n\/usr\/bin\/git\s+1,200\n12 failed\s+1\.8%\n9\.00 s$/);
      for (const index of [0, 2, 4]) {
        await marks().nth(index).click();
        const box = await page.getByRole('dialog').boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
        await page.keyboard.press('Escape');
      }
    }));

  test('status: lost process events are shown like lost samples', async () => {
    await open();
    assert.doesNotMatch(await byId('open-status').textContent(), /process events/);
    await byId('open-status').click();
    assert.match(await byId('status-events-captured').textContent(), /^91,200/);
    server.scenario = 'events_lost';
    await open();
    const button = await byId('open-status').textContent();
    assert.match(button, /^12\.3% of process events lost.*· 11,180 process events lost$/);
    await byId('open-status').click();
    const panel = await page.getByRole('dialog', {name: 'Status'}).textContent();
    assert.match(panel, /lost: event overflow11,000 events.*lost: not taken180 events/);
    assert.match(panel, /opted out500 events/, 'apart from the losses');
    assert.doesNotMatch(panel, /lost: opted out/);
    assert.match(panel, /node-1.*11,180 process events lost/);
    for (const [name, value] of [['stored', '79,500'], ['lost', '11,180'], ['on-the-way', '20']]) {
      assert.match(await byId(`status-events-${name}`).textContent(), new RegExp(`^${value}`));
    }
    const numbers = await page.locator('.header > *').evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect()).map(({left, right}) => ({left, right})));
    numbers.slice(1).forEach(({left}, i) => assert.ok(left >= numbers[i].right, `part ${i + 1} of the header`));
  });
});
