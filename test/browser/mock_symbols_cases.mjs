import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, truncateSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, describe, test} from 'node:test';
import {settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {fixed, server, page, open, byId, hashParameter, lastQuery, forgive} from './mock_harness.mjs';

const opened = `${fixed}&executables=open`;
const answer = fixtures.symbols();
const asked = () => server.requests.filter((url) => url.pathname.endsWith('/symbols')).length;
const row = (name) => byId('executable').filter({has: page.getByText(name, {exact: true})});
const cells = (name) => row(name).locator('th, td').allTextContents();
const file = (name, text) => ({name, mimeType: 'application/octet-stream', buffer: Buffer.from(text)});
const choose = (...files) => byId('upload-files').setInputFiles(files);
const outcomes = () => byId('upload-outcome').allTextContents();
// Waits until all files are processed and the page shows the results.
const through = async () => {
  await byId('upload-progress').filter({hasText: 'All files are finished'}).waitFor();
  await settled(page);
};

const scratch = mkdtempSync(join(tmpdir(), 'tributary-upload-'));
after(() => rmSync(scratch, {recursive: true, force: true}));

describe('executables', () => {
  test('shows one line, and the list after a click that the address remembers', async () => {
    await open();
    const unnamed = answer.executables.reduce((sum, e) => sum + e.unnamed_addresses, 0);
    const addresses = answer.executables.reduce((sum, e) => sum + e.addresses, 0);
    assert.equal(
      await byId('executables-line').textContent(),
      `10 · ${((100 * unnamed) / addresses).toFixed(1)}% of sampled addresses have no name · 2 problems`,
    );
    assert.equal(await byId('executables-body').count(), 0);
    await byId('executables-details').click();
    assert.equal(await hashParameter('executables'), 'open');
    assert.equal(await byId('executables-details').getAttribute('aria-expanded'), 'true');
    await settled(page);
    assert.equal(await byId('executable').count(), answer.executables.length);
    await open(opened);
    assert.equal(await byId('executable').count(), answer.executables.length);
    await byId('executables-details').click();
    assert.equal(await hashParameter('executables'), null);
    assert.equal(await byId('executables-body').count(), 0);
  });

  test('most samples first, each with the source and origin of its names and its unnamed addresses', async () => {
    await open(opened);
    const names = await byId('executable').locator('th').allTextContents();
    const counts = answer.executables.map((e) => e.total_count);
    assert.deepEqual([...counts].sort((a, b) => b - a), counts);
    answer.executables.slice(0, 5).forEach((e, i) => assert.ok(names[i].startsWith(e.name), names[i]));
    const whole = answer.total.count;
    const share = (name) => {
      const {total_count} = answer.executables.find((e) => e.name === name);
      return `${((100 * total_count) / whole).toFixed(1)}%${total_count.toLocaleString('en')} samples`;
    };
    assert.deepEqual(await cells('truth'), [
      'truth/usr/local/bin/truth9f3c9f3c9f3c…',
      share('truth'),
      'debug informationfrom an upload',
      'an upload',
      '5,120',
      '0%0 of 40',
    ]);
    assert.deepEqual((await cells('libz.so.1')).slice(0, 4), [
      'libz.so.1/usr/lib/libz.so.1go:12ab12ab12ab…',
      share('libz.so.1'),
      'Go tablefrom one node',
      'one node',
    ]);
    assert.deepEqual((await cells('evil')).slice(1), [share('evil'), 'none', '', '', '100%30 of 30']);
    const sources = {
      'libc.so.6': /^debug information.*debuginfod$/,
      'python3.11': /^symbols/,
      '[kernel]': /^kernel/,
      'libcrypto.so.3': /^exported symbols/,
      'libssl.so.3': /^function bounds/,
    };
    for (const [name, words] of Object.entries(sources)) assert.match((await cells(name))[2], words);
    assert.equal(await page.getByText('contested', {exact: true}).count(), 1);
    assert.equal(await row('nginx').locator('.contested').count(), 1);
    assert.equal(await row('truth').locator('code').getAttribute('title'), `build-id ${answer.executables.find((e) => e.name === 'truth').build_id}`);
    // An executable without samples, with a source and an origin that this page does not know.
    assert.deepEqual((await cells('name not known')).slice(1), ['–', 'some new sourcefrom some new origin', 'some new origin', '8', '–']);
  });

  test('a program filters, a library does not', async () => {
    await open(`${opened}&query=${encodeURIComponent('{thread_name="x"}')}`);
    assert.deepEqual((await byId('executable-choose').allTextContents()).sort(), ['evil', 'nginx', 'python3.11', 'truth']);
    await row('nginx').getByRole('button').click();
    await settled(page);
    assert.equal(lastQuery('flamegraph'), '{thread_name="x", process_executable_name="nginx"}');
    assert.equal(lastQuery('symbols'), '{thread_name="x", process_executable_name="nginx"}');
    assert.match(await byId('executables-line').textContent(), /^6 · /);
    assert.deepEqual((await cells('truth')).slice(1, 2), ['–']);
  });

  test('hostile names and paths are text', async () => {
    await open(opened);
    const [name, path] = [fixtures.hostile.command, answer.executables.find((e) => e.build_id === '').path];
    assert.equal(await row(name).locator('.executable-detail span').first().textContent(), path);
    assert.match((await cells(name))[0], /no build-id$/);
    assert.match((await cells('evil'))[0], /^evil\/tmp\/bell\\u0007escape\\u001b\[31mred\\u202etxt\/evil/);
    const notices = await byId('symbol-notice').allTextContents();
    assert.match(notices[0], /^\d\d:\d\d:\d\dthe debuginfod server https:\/\/debug\.example does not answer 12 times$/);
    assert.ok(notices[1].includes(`${fixtures.hostile.image}: it is cut off${fixtures.controlShown} e811e811e811…`));
    assert.equal(await page.locator('.executables :is(img, script, svg[onload])').count(), 0);
  });

  test('the list is requested with every refresh while open, once a minute while closed', async () => {
    await open();
    assert.equal(asked(), 1);
    await byId('refresh').click();
    await settled(page);
    assert.equal(asked(), 1);
    await byId('executables-details').click();
    await settled(page);
    assert.equal(asked(), 2);
    await byId('refresh').click();
    await settled(page);
    assert.equal(asked(), 3);
    await byId('executables-details').click();
    await byId('selector').fill('{process_pid="4242"}');
    await byId('selector').press('Enter');
    await settled(page);
    assert.equal(asked(), 4); // the selector changed
  });

  test('loading, empty, failed, failed later', async () => {
    server.scenario = 'slow';
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${opened}`);
    await byId('executables-line').filter({hasText: 'Loading'}).waitFor();
    server.scenario = 'empty';
    await open(opened);
    assert.equal(await byId('executables-line').textContent(), 'none in this selection');
    assert.match(await byId('executables-empty').textContent(), /^Nothing was sampled/);
    assert.equal(await byId('drop-zone').count(), 1);
    server.scenario = 'symbols_error';
    await open(opened);
    assert.equal(await byId('executables-line').textContent(), 'the query took <b>longer</b> than 30 s');
    assert.equal(await byId('executables-table').count(), 0);
    server.scenario = 'normal';
    await byId('refresh').click();
    await settled(page);
    assert.equal(await byId('executable').count(), answer.executables.length);
    server.scenario = 'symbols_error';
    await byId('refresh').click();
    await settled(page);
    assert.match(await byId('executables-stale').textContent(), /<b>longer<\/b> than 30 s \(The data shown is older\.\)$/);
    assert.equal(await byId('executable').count(), answer.executables.length);
    forgive(/status of 504/);
  });
});

describe('sending names', () => {
  test('several files are sent in turn, each shows its result; list and graph are requested again', async () => {
    await open(opened);
    const before = server.requests.length;
    await choose(file('evil.debug', 'evil'), file(fixtures.hostile.image, 'again'), file(`a\u202e${'x'.repeat(300)}`, 'hello'));
    await through();
    assert.deepEqual(server.uploads, ['evil', 'again', 'hello']);
    assert.deepEqual(await outcomes(), [
      'stored: debug information, 321 functions, build-id e811e811e811…',
      'known already: debug information, 321 functions, from an upload, build-id e811e811e811…',
      `refused: the file is neither an ELF file nor ${fixtures.hostile.image}`,
    ]);
    assert.deepEqual(await byId('upload-remark').allTextContents(), [
      `the debug information of 3 units is in .dwo files ${fixtures.hostile.script}`,
    ]);
    const names = await byId('upload').locator('.upload-name').allTextContents();
    assert.deepEqual(names.slice(0, 2), ['evil.debug', fixtures.hostile.image]);
    assert.ok(names[2].startsWith('a\\u202exxx'));
    const after = server.requests.slice(before).map((url) => url.pathname.split('/').at(-1));
    assert.ok(after.includes('symbols') && after.includes('flamegraph'), after.join());
    assert.deepEqual((await cells('evil')).slice(2), ['debug informationfrom an upload', 'an upload', '321', '0%0 of 30']);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1440);
    await byId('upload-clear').click();
    assert.equal(await byId('upload').count(), 0);
    forgive(/status of 400/);
  });

  test('a file that is known already causes no new requests', async () => {
    await open(opened);
    const before = server.requests.length;
    await choose(file('twice', 'again'));
    await through();
    assert.equal(server.requests.length, before);
  });

  test('shows waiting and sending, on the line of the closed card, too', async () => {
    await open(opened);
    server.scenario = 'upload_slow';
    await choose(file('evil', 'evil'), file('two', 'again'));
    await byId('upload-outcome').filter({hasText: 'sending'}).waitFor();
    assert.deepEqual(await outcomes(), ['sending…', 'waiting']);
    assert.equal(await byId('upload-progress').textContent(), 'sending file 1 of 2');
    await byId('executables-details').click();
    assert.match(await byId('executables-line').textContent(), / · sending file 1 of 2$/);
    await byId('executables-details').click();
    await server.answerUpload();
    await through();
    assert.deepEqual((await outcomes()).map((text) => text.split(':')[0]), ['stored', 'known already']);
  });

  test('too large: shows the reason, although the reducer did not read the file', async () => {
    const path = join(scratch, 'large.debug');
    writeFileSync(path, '');
    truncateSync(path, 64 << 20);
    server.scenario = 'upload_too_large';
    await open(opened);
    await byId('upload-files').setInputFiles(path);
    await through();
    assert.deepEqual(await outcomes(), ['refused: the file is larger than 1000 bytes (--symbol-file-max-bytes)']);
    forgive(/status of 413/);
  });

  test('forbidden: shows the reason', async () => {
    server.scenario = 'upload_off';
    await open(opened);
    await choose(file('evil', 'evil'));
    await through();
    assert.deepEqual(await outcomes(), ['refused: this reducer accepts no uploads (--symbol-uploads off)']);
    forgive(/status of 403/);
  });

  test('cut off: shows it, sends the next file, and offers to send the file again', async () => {
    await open(opened);
    server.scenario = 'upload_cut';
    await choose(file('evil', 'evil'), file('two', 'again'));
    await through();
    for (const text of await outcomes()) assert.match(text, /^not stored: The connection ended before the reducer answered/);
    server.scenario = 'normal';
    await byId('upload-again').first().click();
    await byId('upload-outcome').filter({hasText: 'stored: debug'}).waitFor();
    await through();
    assert.match((await outcomes())[1], /^not stored/);
    forgive(/net::ERR_/);
  });

  test('shows a file that was deleted after it was chosen', async () => {
    const path = join(scratch, 'gone');
    writeFileSync(path, 'evil');
    await open(opened);
    server.scenario = 'upload_slow';
    await byId('upload-files').setInputFiles([path, path]);
    await server.heldUpload; // the first one is read
    rmSync(path);
    await server.answerUpload();
    await through();
    assert.match((await outcomes())[1], /^not stored: The file cannot be read/);
  });

  test('takes files dropped in the zone; files dropped elsewhere do not replace the page', async () => {
    await open(opened);
    const drop = (selector) =>
      page.evaluate((target) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(['evil'], 'dropped.debug'));
        const send = (type) => {
          const event = new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true});
          document.querySelector(target).dispatchEvent(event);
          return event.defaultPrevented;
        };
        return [send('dragover'), send('drop')];
      }, selector);
    assert.deepEqual(await drop('[data-testid="timeline"], .timeline'), [true, true]);
    assert.equal(await byId('upload').count(), 0);
    assert.deepEqual(await drop('[data-testid="drop-zone"]'), [true, true]);
    await through();
    assert.match((await outcomes())[0], /^stored/);
    assert.deepEqual(server.uploads, ['evil']);
  });

  test('by keyboard alone', async () => {
    await open(opened);
    // Register early: the browser needs time until it knows that this test chooses the file, not a system dialog.
    const chooser = page.waitForEvent('filechooser');
    await byId('executables-details').focus();
    const reached = async () => page.evaluate(() => document.activeElement?.getAttribute('data-testid'));
    for (let tabs = 0; tabs < 12 && (await reached()) !== 'upload-files'; ++tabs) await page.keyboard.press('Tab');
    assert.equal(await reached(), 'upload-files');
    await page.keyboard.press('Enter');
    await (await chooser).setFiles([file('evil', 'evil')]);
    await through();
    assert.match((await outcomes())[0], /^stored/);
  });

  test('leaves out the files that exceed the limit of the list, and reports that', async () => {
    await open(opened);
    await page.evaluate(() => {
      const dataTransfer = new DataTransfer();
      for (let i = 0; i < 507; ++i) dataTransfer.items.add(new File(['again'], `f${i}`));
      const event = new DragEvent('drop', {dataTransfer, bubbles: true, cancelable: true});
      document.querySelector('[data-testid="drop-zone"]').dispatchEvent(event);
    });
    assert.match(await byId('upload-left-out').textContent(), /^7 files were left out: the limit is 500\./);
    assert.equal(await byId('upload').count(), 500);
    await through();
    assert.equal(server.uploads.length, 500);
  });

  test('fits a phone', async () => {
    await page.setViewportSize({width: 390, height: 800});
    try {
      await open(opened);
      await choose(file('a-very-long-name-of-a-file-that-is-wider-than-a-phone.so.1.2.3.debug', 'evil'));
      await through();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
