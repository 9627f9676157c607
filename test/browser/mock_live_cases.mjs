import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {describe, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {range, server} from './mock_harness.mjs';

// The instrument that checks a running reducer, against this one: it must agree, and must notice when page and API do
// not.
describe('live.mjs', () => {
  const script = fileURLToPath(new URL('live.mjs', import.meta.url));
  const run = (...more) =>
    new Promise((resolve) => {
      const options = [
        '--url',
        server.url,
        '--executable',
        'truth',
        '--from',
        String(range.from),
        '--to',
        String(range.to),
        ...more,
      ];
      execFile(process.execPath, [script, ...options], (error, stdout, stderr) =>
        resolve({code: error?.code ?? 0, stdout, stderr}),
      );
    });

  test('agrees with a truthful server', async () => {
    const {code, stdout, stderr} = await run('--functions', 'spin_sixty,spin_thirty,spin_ten');
    assert.equal(stderr, '');
    assert.match(stdout, /spin_sixty: 60\.00% of 3,000 samples/);
    assert.match(stdout, /stack health of everything: 96\.7% of stacks complete, 4 executables to blame/);
    assert.match(stdout, /stack health of truth: 100% of stacks complete, 0 executables to blame/);
    assert.match(stdout, /page and API agree/);
    assert.equal(code, 0);
  });

  test('notices three samples of 3,000 in the wrong function', async () => {
    server.scenario = 'two_faced';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: pixels of spin_sixty: total: the page says 59\.90%, the API 60\.0000%/);
    assert.equal(code, 1);
  });

  test('notices three stacks that ended otherwise', async () => {
    server.scenario = 'two_faced_health';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: stack health of everything: complete: the page says "4,514 samples"/);
    assert.equal(code, 1);
  });

  test('notices a function that is not there', async () => {
    const {code, stderr} = await run('--functions', 'spin_none');
    assert.match(stderr, /mismatch: the API's flame graph has no frame spin_none/);
    assert.equal(code, 1);
  });
});
