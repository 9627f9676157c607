import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {click, hover, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {lines, longFunction, slowText} from './lines_fixtures.mjs';
import {fixed, frame, root, server, page, open, byId, hashParameter, forgive, percent} from './mock_harness.mjs';

const linked = (name, executable = '', more = '') =>
  `${fixed}&lines=${encodeURIComponent(name)}&lines_in=${encodeURIComponent(executable)}${more}`;
const asked = () => server.requests.filter((url) => url.pathname.endsWith('/lines')).map(({searchParams}) => searchParams);
const places = () => byId('line-open').locator('.line-place').allTextContents();
const focused = () => page.evaluate(() => document.activeElement?.getAttribute('data-testid'));
const name = () => byId('lines-name').textContent();
// Returns whether a row of the listing is in the visible part of the page.
const inSight = (place) =>
  page.evaluate((wanted) => {
    const box = document.querySelector('.listing-scroll').getBoundingClientRect();
    const row = document.querySelector(`[data-place="${CSS.escape(wanted)}"]`).getBoundingClientRect();
    return row.top > box.top && row.bottom < Math.min(box.bottom, innerHeight);
  }, place);

const answer = lines('spin_sixty', 'truth');
const hottest = answer.lines.reduce((a, b) => (b.total_ns > a.total_ns ? b : a));
const hottestPlace = `${hottest.file}:${hottest.line}`;

describe('ways to the lines of a function', () => {
  test('from the table, and back with Back, the button and Escape', async () => {
    await open();
    for (const back of [() => page.goBack(), () => byId('lines-close').click(), () => page.keyboard.press('Escape')]) {
      await byId('top-lines').first().click();
      await settled(page);
      assert.equal(await name(), 'spin_sixty');
      assert.deepEqual([await hashParameter('lines'), await hashParameter('lines_in')], ['spin_sixty', 'truth']);
      assert.equal(await page.locator('.panes').count(), 0);
      await back();
      await settled(page);
      assert.equal(await byId('lines').count(), 0);
      assert.equal(await hashParameter('lines'), null);
      assert.equal(await byId('flame').count(), 1);
    }
  });

  test('from the zoomed frame, the frame under the pointer, and the focused frame', async () => {
    await open();
    assert.equal(await byId('zoomed-lines').count(), 0);
    await page.keyboard.press('l'); // the root has no lines
    assert.equal(await byId('lines').count(), 0);
    await click(page, frame('step'), root);
    await byId('zoomed-lines').click();
    await settled(page);
    assert.equal(await name(), 'step');
    await page.keyboard.press('Escape');
    await settled(page);
    await byId('reset-zoom').click();
    await hover(page, frame('spin_thirty'), root);
    assert.match(await byId('tooltip').textContent(), /Press L to show the lines of this function$/);
    await page.keyboard.press('l');
    await settled(page);
    assert.equal(await name(), 'spin_thirty');
    await page.keyboard.press('Escape');
    await byId('flame').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('l');
    await settled(page);
    assert.equal(await name(), '_start');
    await page.keyboard.press('Escape');
    await byId('search').fill('l'); // in the search field, the letter is text
    assert.equal(await byId('lines').count(), 0);
  });

  test('from a search: lists the functions found, most time first', async () => {
    await open();
    assert.equal(await byId('open-lines-of-matches').count(), 0);
    await byId('search').fill('spin_t');
    await byId('open-lines-of-matches').click();
    assert.deepEqual(await byId('match-lines').locator('.option-label').allTextContents(), ['spin_thirty', 'spin_ten']);
    assert.equal(await byId('match-lines').locator('.option-weight').first().textContent(), percent(900, 4705));
    await byId('match-lines').last().click();
    await settled(page);
    assert.equal(await name(), 'spin_ten');
    assert.equal(asked().at(-1).get('executable'), 'truth');
  });

  test('by keyboard alone: open, move, addresses, close', async () => {
    await open();
    await byId('flame').focus();
    await page.keyboard.press('ArrowDown');
    for (const wanted of ['_start', '__libc_start_main', 'main', 'run', 'step', 'spin_sixty']) {
      await page.keyboard.press('ArrowDown');
      await page.waitForFunction(
        (text) => document.querySelector('[data-testid="tooltip-name"]')?.textContent === text,
        wanted,
      );
    }
    await page.keyboard.press('l');
    await settled(page);
    assert.equal(await focused(), 'lines');
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), 'line-open');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    assert.equal(await hashParameter('line'), hottestPlace);
    assert.ok((await byId('address').count()) > 0);
    await page.keyboard.press('End');
    assert.match(await page.evaluate(() => document.activeElement.textContent), /spin\.c:175/);
    assert.equal(await inSight(`${hottest.file}:175`), true);
    await page.keyboard.press('Home');
    assert.equal(await inSight(hottestPlace), true);
    await page.keyboard.press('Escape');
    await settled(page);
    assert.equal(await focused(), 'flame');
  });
});

describe('lines', () => {
  test('hottest first, self and total of the function; the listing shows the hottest at first sight', async () => {
    await open(linked('spin_sixty', 'truth'));
    assert.deepEqual(
      (await places()).map((text) => text.split('/')[0]),
      ['spin.c:104', 'spin.c:105', 'spin.c:106', 'spin.c:103', 'spin.c:174', 'no line known', 'spin.c:175'],
    );
    const cells = await byId('line').first().locator('td.amount').allTextContents();
    assert.deepEqual(cells, ['42.0%39.8 s', '42.0%39.8 s']);
    assert.equal(await byId('line').first().locator('.line-text').textContent(), 'state ^= load_le64(block + i);');
    assert.match(await byId('line-count').textContent(), /^7 lines; percentages of this function’s 1,800 samples$/);
    const share = `${((100 * 1800) / 4705).toFixed(1)}%`;
    assert.equal(await byId('lines-sums').textContent(), `94.7 s · ${share} of the selection · 1,800 samples · 94.7 s self`);
    assert.equal(await byId('lines-unplaced').count(), 0); // one percent
    assert.equal(await inSight(hottestPlace), true);
    assert.equal(await byId('source-hot').count(), 6);
    assert.deepEqual(
      await page.locator(`[data-place="${hottestPlace}"] .gutter span`).allTextContents(),
      ['42.0%', '42.0%'],
    );
    assert.match(await page.locator(`[data-place="${hottestPlace}"]`).getAttribute('class'), /heat-4/);
    assert.equal(await page.locator(`[data-place="${hottestPlace}"] td`).textContent(), '\t\tstate ^= load_le64(block + i);');
  });

  test('sorts by self and by place, and the address remembers', async () => {
    await open(linked('spin_sixty', 'truth'));
    await byId('lines-sort-place').click();
    assert.equal((await places())[0], 'no line known');
    assert.match((await places())[1], /^spin\.c:103/);
    assert.equal(await hashParameter('lines_sort'), 'place');
    await open(linked('spin_sixty', 'truth', '&lines_sort=self'));
    assert.equal(await byId('line-table').locator('th.self').getAttribute('aria-sort'), 'descending');
  });

  test('the addresses of a line: from table and listing, and in a link', async () => {
    await open(linked('spin_sixty', 'truth'));
    await byId('line-open').first().click();
    const shown = await byId('address').locator('td').allTextContents();
    const [least, most] = hottest.addresses;
    assert.deepEqual(shown.slice(0, 3), [most.address, '9f3c9f3c9f3c…', String(most.count)]);
    assert.deepEqual(shown.slice(4, 7), [least.address, '9f3c9f3c9f3c…', String(least.count)]);
    assert.equal(await page.locator('tr.chosen').getAttribute('data-place'), hottestPlace);
    await byId('line-open').first().click();
    assert.equal(await byId('address').count(), 0);
    await page.locator(`[data-place="${hottest.file}:174"] button`).click();
    assert.equal(await hashParameter('line'), `${hottest.file}:174`);
    assert.equal(await byId('line').nth(4).locator('button').getAttribute('aria-expanded'), 'true');
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await settled(page);
    assert.ok((await byId('address').count()) > 0);
    assert.equal(await inSight(`${hottest.file}:174`), true);
    // Code without a known line has addresses, too.
    await byId('line-open').nth(5).click();
    assert.ok((await byId('address').count()) > 0);
    assert.equal(await hashParameter('line'), '?');
  });

  test('lines without samples are folded, and a click opens them', async () => {
    await open(linked('spin_sixty', 'truth'));
    assert.deepEqual(await byId('gap').allTextContents(), ['⋯ 57 lines']);
    assert.ok(!(await byId('listing').textContent()).includes('line 30'));
    await byId('gap').click();
    assert.ok((await byId('listing').textContent()).includes('what is between, line 30'));
    assert.equal(await byId('gap').count(), 0);
  });

  test('a function in several files, with names and text an attacker would choose', async () => {
    await open(linked('step'));
    const files = await byId('listing-file').locator('.listing-path b').allTextContents();
    assert.deepEqual(files, ['step.cc', 'step_inlined.h', fixtures.hostile.image]);
    const text = await byId('listing').textContent();
    assert.ok(text.includes(fixtures.hostile.script));
    assert.ok(text.includes(fixtures.controlShown));
    assert.ok(!text.includes('\r') && !text.includes('\\u000d'));
    assert.match(text, /combine\(a, b, …/); // cut at the same place as the reducer cuts
    assert.match(await byId('textless').textContent(), /--source-dir.*stl_algo\.h 1 line, 5\.0%/);
    assert.equal(await page.locator('.lines :is(img, script, svg[onload])').count(), 0);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1440);
    assert.match(await byId('lines-sums').textContent(), / · 0 s self$/);
  });

  test('without text, shows only the table and explains how to get the text', async () => {
    await open(linked('spin_thirty', 'truth'));
    assert.equal(await byId('listing').count(), 0);
    const files = (await places()).map((text) => text.split('/')[0]);
    assert.deepEqual(files, ['spin.c:191', 'refill.h:12', 'no line known']);
    assert.match(await byId('textless').textContent(), /Start the reducer with --source-dir.*spin\.c 1 line, 60\.0%/);
    const unplaced = await byId('lines-unplaced').textContent();
    assert.match(unplaced, /^15\.0% of this function’s total has no line\. The debug information has no line for this code/);
  });

  test('text that is being fetched appears without a reload', async () => {
    slowText.times = 1;
    await open(linked('spin_sixty', 'truth'));
    assert.match(await byId('lines-coming').textContent(), /^The text of one file is being fetched/);
    assert.equal(await byId('listing').count(), 0);
    await byId('listing').waitFor();
    assert.equal(await byId('lines-coming').count(), 0);
    assert.equal(slowText.times, 0);
  });

  test('two thousand lines: the hottest in sight, the rest counted', async () => {
    const before = Date.now();
    await open(linked('run', 'truth'));
    assert.match(await byId('line-count').textContent(), /^The first 500 of 2,000 lines/);
    assert.equal(await byId('line').count(), 500);
    const drawn = await byId('source-hot').count();
    assert.ok(drawn >= 1500 && drawn < 1600, `${drawn} lines`);
    assert.match(await byId('undrawn').textContent(), new RegExp(`^${2000 - drawn} more lines with samples are hidden in`));
    assert.equal(await inSight(`${longFunction.file}:1235`), true);
    console.log(`# 2,000 lines: shown in ${Date.now() - before} ms`);
  });

  test('template arguments are left out of the name on demand', async () => {
    await open(linked('f<int>::g', '', '&names=short'));
    assert.equal(await name(), 'f<…>::g');
    assert.equal(await byId('lines-name').getAttribute('title'), 'f<int>::g');
    await byId('names-full').click();
    assert.equal(await name(), 'f<int>::g');
  });
});

describe('requests for lines', () => {
  test('use the selection, and repeat with every refresh and when it changes', async () => {
    const query = '{process_executable_name="truth"}';
    await open(linked('spin_sixty', 'truth', `&query=${encodeURIComponent(query)}`));
    assert.equal(asked().length, 1);
    const {from, to, ...more} = Object.fromEntries(asked()[0]);
    assert.deepEqual(more, {query, function: 'spin_sixty', executable: 'truth'});
    assert.equal(from, String(fixtures.from));
    assert.equal(to, String(fixtures.to));
    assert.equal(await byId('lines-query').textContent(), query);
    await byId('refresh').click();
    await settled(page);
    assert.equal(asked().length, 2);
    await byId('selector').fill('{process_executable_name="nginx"}');
    await byId('selector').press('Enter');
    await settled(page);
    assert.equal(asked().at(-1).get('query'), '{process_executable_name="nginx"}');
    assert.match(await byId('lines-empty').textContent(), /No sample of this selection is in a function of that name/);
    await byId('lines-close').click();
    await byId('refresh').click();
    await settled(page);
    assert.equal(asked().length, 3);
  });

  test('send the name unchanged, and the page shows its control characters', async () => {
    await open();
    await byId('search').fill('bell');
    await byId('open-lines-of-matches').click();
    await byId('match-lines').first().click();
    await settled(page);
    assert.equal(asked().at(-1).get('function'), fixtures.hostile.control);
    assert.equal(await name(), fixtures.controlShown);
    assert.equal(await byId('line').count(), 1);
    await page.keyboard.press('Escape');
    await click(page, frame(fixtures.hostile.control), root);
    await byId('zoomed-lines').click();
    await settled(page);
    assert.equal(asked().at(-1).get('function'), fixtures.hostile.control);
  });
});

describe('states of lines', () => {
  test('loading, failed, failed later', async () => {
    server.scenario = 'slow';
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${linked('spin_sixty', 'truth')}`);
    await byId('lines').getByTestId('loading').waitFor();
    server.scenario = 'lines_error';
    await open(linked('spin_sixty', 'truth'));
    assert.match(await byId('error').textContent(), /the query took <b>longer<\/b> than 30 s/);
    server.scenario = 'normal';
    await byId('error').getByRole('button').click();
    await settled(page);
    assert.equal(await byId('line').count(), 7);
    server.scenario = 'lines_error';
    await byId('refresh').click();
    await settled(page);
    assert.match(await byId('lines-stale').textContent(), /<b>longer<\/b> than 30 s \(The data shown is older\.\)$/);
    assert.equal(await byId('line').count(), 7);
    forgive(/status of 504/);
  });

  test('without lines, explains the reason and a remedy for each source of names', async () => {
    const cases = [
      ['dict_lookup', 'python3.11', /come from symbols, without lines\..*tributary symbols push/],
      ['EVP_DecryptUpdate', 'libcrypto.so.3', /come from exported symbols, without lines/],
      ['do_syscall_64', '', /The nodes send the names of kernel and module functions/],
      ['ngx_epoll_process_events', 'nginx', /debug information has no line for this code.*-g1/],
    ];
    for (const [of, executable, words] of cases) {
      await open(linked(of, executable));
      assert.match(await byId('no-lines').textContent(), words);
      assert.deepEqual(await places(), ['no line known']);
    }
    await byId('line-open').click();
    assert.ok((await byId('address').count()) > 0);
    await byId('no-lines').getByRole('button', {name: 'Show Executables'}).click();
    await settled(page);
    assert.equal(await hashParameter('executables'), 'open');
    for (const [of, words] of [
      ['libcrypto.so.3+0x1f84a0', /This code has no name.*tributary symbols push/],
      ['[unknown]', /just-in-time compiler/],
      ['missing_function', /No sample of this selection/],
    ]) {
      await open(linked(of));
      if (of !== 'missing_function') server.scenario = 'empty'; // the reducer finds no lines by such names
      await byId('refresh').click();
      await settled(page);
      assert.match(await byId('lines-empty').textContent(), words);
      server.scenario = 'normal';
    }
  });

  test('fits a phone', async () => {
    await page.setViewportSize({width: 390, height: 800});
    try {
      for (const of of ['spin_sixty', 'step', 'dict_lookup', 'spin_thirty']) {
        await open(linked(of));
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, of);
        const {y} = await byId('lines').boundingBox();
        assert.ok(y >= 0 && y < 20, `${of} begins ${y} pixels below the top`);
      }
      await open(`${fixed}&search=spin`);
      await byId('open-lines-of-matches').click();
      const box = await page.getByRole('dialog').boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
