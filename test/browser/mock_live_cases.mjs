import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, describe, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import * as fixtures from './fixtures.mjs';
import {range, server} from './mock_harness.mjs';

// Runs live.mjs, which checks a running reducer, with the mock reducer. It must agree if page and API agree, and must
// notice if they do not.
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

  const scratch = mkdtempSync(join(tmpdir(), 'tributary-live-'));
  after(() => rmSync(scratch, {recursive: true, force: true}));
  const upload = (name, text) => {
    writeFileSync(join(scratch, name), text);
    return ['--functions', 'spin_sixty', '--upload', join(scratch, name)];
  };

  test('agrees with a truthful server', async () => {
    const {code, stdout, stderr} = await run('--functions', 'spin_sixty,spin_thirty,spin_ten');
    assert.equal(stderr, '');
    assert.match(stdout, /spin_sixty: 60\.00% of 3,000 samples/);
    assert.match(stdout, /stack health of everything: 96\.7% of stacks complete, 4 executables to blame/);
    assert.match(stdout, /stack health of truth: 100% of stacks complete, 0 executables to blame/);
    assert.match(stdout, /executables: 10 · 12\.3% of sampled addresses have no name.*, 11 rows as the API says/);
    assert.match(stdout, /lines of spin_sixty: 7, 6 with text, 99\.0% of its time in known ones, as the API says/);
    assert.match(stdout, /page and API agree/);
    assert.equal(code, 0);
  });

  test('agrees about another type in its unit, and notices a wrong unit', async () => {
    server.types = fixtures.types.two;
    const {code, stdout, stderr} = await run('--functions', 'spin_sixty', '--type', 'alloc_space:bytes');
    assert.equal(stderr, '');
    assert.match(stdout, /types: alloc_space \(bytes\), cpu \(nanoseconds\), as the API says/);
    assert.match(stdout, /alloc_space: .* KiB\/s on average, 18\.4 MiB of alloc_space, 4,705 samples, as the API says/);
    assert.equal(code, 0);
    server.scenario = 'two_faced_unit';
    const noticed = await run('--functions', 'spin_sixty', '--type', 'alloc_space:bytes');
    assert.match(noticed.stderr, /mismatch: all alloc_space: the page says "19\.3M pages", the API "18\.4 MiB"/);
    assert.equal(noticed.code, 1);
  });

  test('agrees about process events, and notices one process too many', async () => {
    const {code, stdout, stderr} = await run('--functions', 'spin_sixty', '--events');
    assert.equal(stderr, '');
    assert.match(stdout, /process events: 4 crashes, 2 OOM kills, 3 restarts; .* short-lived processes.*; as the API says/);
    assert.equal(code, 0);
    server.scenario = 'two_faced_events';
    const noticed = await run('--functions', 'spin_sixty', '--events');
    assert.match(noticed.stderr, /mismatch: programs: row 1, git: processes: the page says "1,201", the API "1,200"/);
    assert.equal(noticed.code, 1);
  });

  test('notices three samples of 3,000 in the wrong function', async () => {
    server.scenario = 'two_faced';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: pixels of spin_sixty: total: the page says 59\.90%, the API 60\.0000%/);
    assert.equal(code, 1);
  });

  test('notices three samples in the wrong line', async () => {
    server.scenario = 'two_faced_lines';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: .*: the page says [\d.]+%, the API/);
    assert.equal(code, 1);
  });

  test('notices three stacks with a different ending', async () => {
    server.scenario = 'two_faced_health';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: stack health of everything: complete: the page says "4,514 samples"/);
    assert.equal(code, 1);
  });

  test('sends a file, and notices when its names do not appear', async () => {
    const taken = await run(...upload('libssl.so.3', 'libssl.so.3'));
    assert.equal(taken.stderr, '');
    assert.match(taken.stdout, /upload of .*libssl.so.3: stored: debug information, 321 functions/);
    assert.equal(taken.code, 0);
    const refused = await run(...upload('nginx', 'hello'));
    assert.match(refused.stderr, /mismatch: upload of .*nginx: its names are still from directory; the page says refused: the file is neither/);
    assert.equal(refused.code, 1);
  });

  test('notices one address with a name', async () => {
    server.scenario = 'two_faced_symbols';
    const {code, stderr} = await run('--functions', 'spin_sixty');
    assert.match(stderr, /mismatch: executables: row 1, libc\.so\.6: no name: the page says "4 of 60", the API "3 of 60"/);
    assert.equal(code, 1);
  });

  test('notices a missing function', async () => {
    const {code, stderr} = await run('--functions', 'spin_none');
    assert.match(stderr, /mismatch: the API's flame graph has no frame spin_none/);
    assert.equal(code, 1);
  });
});
