import assert from 'node:assert/strict';
import {beforeEach, describe, test} from 'node:test';
import {hover, layOut, settled} from './browser.mjs';
import {pythonFlamegraph} from './language_fixtures.mjs';
import {byId, hashParameter, lastParameter, open, page, range, server} from './mock_harness.mjs';

const framesOf = (parameters) => layOut(pythonFlamegraph(range, new URLSearchParams(parameters)));
const tableNames = () => page.locator('[data-testid="top"] .function-name').allTextContents();

async function choose(id) {
  await byId(id).click();
  await settled(page);
}

describe('code of languages', () => {
  beforeEach(() => (server.scenario = 'python'));

  test('frames of the interpreter are shown on demand', async () => {
    await open();
    assert.equal(lastParameter('flamegraph', 'frames'), null);
    const folded = framesOf('');
    const total = folded.find((frame) => frame.name === 'Order.total');
    const tooltip = await hover(page, total, folded[0]);
    assert.deepEqual([tooltip.name, tooltip.executable, tooltip.kind], ['Order.total', 'order.py', 'python']);
    assert.equal(tooltip.totalSamples, '90');
    assert.equal((await tableNames()).includes('_PyEval_EvalFrameDefault'), false);
    await choose('frames-all');
    assert.equal(lastParameter('flamegraph', 'frames'), 'all');
    assert.equal(await hashParameter('frames'), 'all');
    assert.equal((await tableNames()).includes('_PyEval_EvalFrameDefault'), true);
    await choose('frames-function');
    assert.equal(await hashParameter('frames'), null);
  });

  test('lines tell the frames of a function apart, in the graph and in the table', async () => {
    await open();
    await choose('group-line');
    assert.equal(lastParameter('flamegraph', 'lines'), '1');
    const lined = framesOf('lines=1');
    const total = lined.findLast((frame) => frame.name === 'Order.total');
    assert.equal((await hover(page, total, lined[0])).name, 'Order.total (order.py:24)');
    assert.equal(await byId('tooltip-place').textContent(), '/srv/shop/order.py:24');
    assert.deepEqual(await tableNames(), [
      'dot (blas.c:7)',
      'Order.total (order.py:24)',
      'pool_run (blas.c:90)',
      '<module> (order.py:40)',
      '_start',
      'Order.total (order.py:21)',
    ]);
    await byId('top-lines').nth(1).click();
    await settled(page);
    assert.deepEqual([await hashParameter('lines'), await hashParameter('lines_in')], ['Order.total', 'order.py']);
  });

  test('a filter selects the stacks with code of some languages', async () => {
    await open();
    await byId('open-language-filter').click();
    assert.deepEqual(await page.locator('.languages .option-label').allTextContents(), [
      'Native',
      'Kernel',
      'Unknown',
      'Go',
      'Python',
      'JIT-compiled',
    ]);
    await choose('language-python');
    assert.equal(lastParameter('flamegraph', 'language'), 'python');
    assert.equal(lastParameter('timeline', 'language'), null);
    assert.equal((await tableNames()).includes('pool_run'), false);
    await choose('language-go');
    assert.equal(await hashParameter('language'), 'python,go');
    await byId('filter-language').getByRole('button', {name: 'Clear the language filter'}).click();
    await settled(page);
    assert.equal(await hashParameter('language'), null);
    assert.equal((await tableNames()).includes('pool_run'), true);
  });

  test('the legend names the languages and not their files', async () => {
    await open();
    assert.deepEqual(await page.locator('.legend li').allTextContents(), ['python3.11', 'libblas.so', 'python']);
  });
});
